package lab

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// doctorCheck is a check in doctor's report.
type doctorCheck struct{ Name, Result, Found string }

// doctor runs c9s doctor in the lab's namespace and returns its checks.
func (l *lab) doctor(t *testing.T, args ...string) []doctorCheck {
	t.Helper()
	out, err := l.output(t, append([]string{"doctor", "-n", l.ns, "-o", "json"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	var report struct{ Checks []doctorCheck }
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	return report.Checks
}

// TestDoctor: what c9s doctor says of the test cluster is what it is, and nothing of the
// probe is left.
func TestDoctor(t *testing.T) {
	c := testcluster.Shared(t)
	l := &lab{Cluster: c, ns: fmt.Sprintf("doctor-%d", time.Now().UnixNano()%1e9)}
	checks := l.doctor(t, testdata("demo/demo.clab.yml"), "--probe", "--image", c9sImage)
	results := map[string]string{}
	for _, check := range checks {
		results[check.Name] = check.Result
		if check.Result == "problem" {
			t.Errorf("%s: %s", check.Name, check.Found)
		}
	}
	for name, want := range map[string]string{"API server": "ok", "workers": "ok", "Pod MTU": "ok", "network policies": "warning"} {
		if results[name] != want {
			t.Errorf("%s: %q, want %q\n%+v", name, results[name], want, checks)
		}
	}
	if _, ok := results["clocks"]; ok {
		t.Errorf("all workers have the machine's clock:\n%+v", checks)
	}
	if _, err := c.Typed.CoreV1().Namespaces().Get(t.Context(), l.ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("namespace %s is left: %v", l.ns, err)
	}
}
