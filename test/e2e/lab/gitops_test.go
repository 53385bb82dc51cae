package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// triangle is a topology for edits, of nodes A, B, C and those of nodes, and some of the links below.
func triangle(links, nodes string) string {
	return `name: gitops
topology:
  defaults: {kind: linux, image: "ghcr.io/srl-labs/network-multitool:latest"}
  nodes:
    A: {exec: [ip addr add 10.9.0.1/24 dev eth1]}
    B: {exec: [ip addr add 10.9.0.2/24 dev eth1]}
    C: {}
` + nodes + "  links:\n" + links
}

// folder is a rendered folder of the lab.
type folder struct {
	*lab
	dir  string
	args []string // of render
}

// render renders a topology into the folder.
func (f folder) render(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(f.topo, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f.c9s(t, append([]string{"render", f.topo, "-n", f.ns, "--image", c9sImage, "--planner", planner, "-o", f.dir}, f.args...)...)
}

// kubectl applies a folder as the guide says.
func (f folder) kubectl(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kubectl", args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.Kubeconfig(), "KUBECTL_APPLYSET=true")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (f folder) apply(t *testing.T, more ...string) {
	t.Helper()
	f.kubectl(t, append([]string{"apply", "--server-side", "-n", f.ns, "-k", f.dir}, more...)...)
}

// within waits until a device says a text, and returns how long it took.
func (f folder) within(t *testing.T, node, text string, argv ...string) time.Duration {
	t.Helper()
	began := time.Now()
	testcluster.Eventually(t, patience, fmt.Sprintf("%q in %s", text, node), func() error {
		out, err := f.in(t.Context(), node, argv...)
		if err == nil && !strings.Contains(out, text) {
			err = fmt.Errorf("it prints %s", out)
		}
		return err
	})
	return time.Since(began)
}

const (
	abLink = "    - endpoints: [\"A:eth1\", \"B:eth1\"]\n"
	bcLink = "    - endpoints: [\"B:eth2\", \"C:eth1\"]\n"
	acLink = "    - endpoints: [\"A:eth2\", \"C:eth2\"]\n"
)

// TestEditByKubectl: an edit that kubectl applies reaches the running devices within seconds,
// the status says what is no longer in the topology, and an ApplySet prunes it.
func TestEditByKubectl(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("kubectl is not in PATH")
	}
	l := written(t, "gitops", map[string]string{"lab.clab.yml": ""})
	f := folder{lab: l, dir: filepath.Join(t.TempDir(), "manifests")}
	f.render(t, triangle(abLink+bcLink, "    D: {}\n"))
	set := []string{"--prune", "--applyset=configmap/c9s-applyset"}
	f.kubectl(t, "apply", "--server-side", "-k", filepath.Join(f.dir, "secrets"))
	f.apply(t, set...)
	f.ready(t)
	f.reaches(t, "A", "10.9.0.2")
	before := restarts(t, l)

	f.render(t, triangle(abLink+acLink, ""))
	f.apply(t)
	added := f.within(t, "A", "LOWER_UP", "ip", "link", "show", "eth2")
	removed := f.within(t, "B", "gone", "sh", "-c", "ip link show eth2 >/dev/null 2>&1 || echo gone")
	t.Logf("after kubectl: the new link is up after %s, the old one gone %s later", added.Round(10*time.Millisecond), removed.Round(10*time.Millisecond))
	// The kubelet itself takes a minute: much less shows that the controller made it look.
	if added > 15*time.Second || removed > 15*time.Second {
		t.Error("the edit waited for the kubelet")
	}
	testcluster.Eventually(t, patience, "the status to name D", func() error {
		out, err := l.try(context.Background(), "status", "gitops", "-n", l.ns)
		if err == nil && !strings.Contains(out, "D is no longer in the topology") {
			err = fmt.Errorf("it prints %s", out)
		}
		return err
	})
	after := restarts(t, l)
	for _, pod := range []string{"a", "b", "c"} {
		if before[pod] != after[pod] {
			t.Errorf("Pod %s was replaced or restarted: %s, then %s", pod, before[pod], after[pod])
		}
	}
	f.apply(t, set...)
	testcluster.Eventually(t, patience, "D to be pruned", func() error {
		_, err := l.Typed.AppsV1().Deployments(l.ns).Get(t.Context(), "d", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("its Deployment is there: %v", err)
	})
	if _, err := l.Typed.CoreV1().Secrets(l.ns).Get(t.Context(), "c9s-wire-key", metav1.GetOptions{}); err != nil {
		t.Errorf("the wire key was pruned: %v", err)
	}
	f.ready(t)
	// The ApplySet is kubectl's, and destroy would keep the namespace for it.
	if err := l.Typed.CoreV1().ConfigMaps(l.ns).Delete(t.Context(), "c9s-applyset", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	l.destroyed(t)
}

// TestEditWithoutController: the status says that an edit waits for the kubelet.
func TestEditWithoutController(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("kubectl is not in PATH")
	}
	l := written(t, "gitops", map[string]string{"lab.clab.yml": ""})
	f := folder{lab: l, dir: filepath.Join(t.TempDir(), "manifests"), args: []string{"--no-controller"}}
	f.render(t, triangle(abLink, ""))
	f.kubectl(t, "apply", "--server-side", "-k", filepath.Join(f.dir, "secrets"))
	f.apply(t)
	f.ready(t)
	f.render(t, triangle(abLink+acLink, ""))
	f.apply(t)
	s := f.status(t)
	for node, want := range map[string]bool{"A": true, "B": false, "C": true} {
		if late := strings.Contains(s.node(node).Reason, "the kubelet has not delivered the edit yet"); late != want {
			t.Errorf("node %s: %q", node, s.node(node).Reason)
		}
	}
	if s.State != "deploying" {
		t.Errorf("the lab is %s while links wait", s.State)
	}
	l.destroyed(t)
}
