package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// A Pod as c9s renders them: an init container, a privileged native sidecar whose
// startup probe holds the app back, and the app.
const sidecarPod = `
apiVersion: v1
kind: Pod
metadata: {name: lab}
spec:
  terminationGracePeriodSeconds: 0
  volumes: [{name: shared, emptyDir: {}}]
  initContainers:
  - name: prepare
    image: IMAGE
    command: [sh, -c, "echo prepared >> /shared/order"]
    volumeMounts: [{name: shared, mountPath: /shared}]
  - name: wire
    image: IMAGE
    restartPolicy: Always
    command: [sh, -c, "echo wire >> /shared/order; sleep 2; ip link add dum type veth peer name mud; echo started >> /shared/order; touch /ready; exec sleep infinity"]
    securityContext: {privileged: true}
    startupProbe: {exec: {command: [test, -e, /ready]}, periodSeconds: 1, failureThreshold: 60}
    volumeMounts: [{name: shared, mountPath: /shared}]
  containers:
  - name: device
    image: IMAGE
    command: [sh, -c, "echo device >> /shared/order; echo here I am; exec start-services"]
    readinessProbe: {httpGet: {path: /, port: 80}, periodSeconds: 1}
    volumeMounts: [{name: shared, mountPath: /shared}]
`

func TestSidecarGatesTheDevice(t *testing.T) {
	c := testcluster.Shared(t)
	ns := c.Namespace(t)
	c.Apply(t, ns, strings.ReplaceAll(sidecarPod, "IMAGE", hostImage))
	c.WaitReady(t, ns, "lab")

	if got, want := c.Exec(t, ns, "lab", "device", "cat", "/shared/order"), "prepared\nwire\nstarted\ndevice\n"; got != want {
		t.Errorf("order of the containers: got %q, want %q", got, want)
	}
	if got := c.Exec(t, ns, "lab", "device", "ip", "-br", "link"); !strings.Contains(got, "dum@mud") {
		t.Errorf("the device does not see the sidecar's interface:\n%s", got)
	}
	if _, err := c.TryExec(t.Context(), ns, "lab", "device", "sh", "-c", "exit 7"); err == nil || !strings.Contains(err.Error(), "exit code 7") {
		t.Errorf("exit code of a command: got %v", err)
	}
	if got := c.Logs(t, ns, "lab", "device"); !strings.Contains(got, "here I am") {
		t.Errorf("logs of the device: %q", got)
	}
	answers(t, "the Pod by port-forward", c.PortForward(t, ns, "lab", 80))
}

func TestConfigMapUpdate(t *testing.T) {
	c := testcluster.Shared(t)
	ns := c.Namespace(t)
	c.Apply(t, ns, configMap("one"))
	c.Apply(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: reader}
spec:
  terminationGracePeriodSeconds: 0
  volumes: [{name: links, configMap: {name: links}}]
  containers:
  - {name: main, image: `+hostImage+`, command: [sleep, infinity], volumeMounts: [{name: links, mountPath: /links}]}
`)
	c.WaitReady(t, ns, "reader")
	read := func(want string) error {
		got, err := c.TryExec(t.Context(), ns, "reader", "", "cat", "/links/value")
		if err == nil && got != want {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	}
	if err := read("one"); err != nil {
		t.Fatalf("at the start: %v", err)
	}

	// By itself the kubelet looks again once a minute. A change of the Pod's
	// metadata makes it look at once: at the ConfigMap as the kubelet knows it, which
	// may be the old one, hence again.
	began := time.Now()
	c.Apply(t, ns, configMap("two"))
	var revision, annotated int
	testcluster.Eventually(t, patience, "the ConfigMap's new value", func() error {
		if now := int(time.Since(began) / (5 * time.Second)); revision == 0 || now > annotated {
			revision, annotated = revision+1, now
			c.Annotate(t, ns, "reader", "c9s.dev/revision", fmt.Sprint(revision))
		}
		return read("two")
	})
	t.Logf("the new value was there after %s and %d annotations", time.Since(began).Round(10*time.Millisecond), revision)
}

func configMap(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: links}\ndata: {value: " + value + "}\n"
}

// answers waits until the web server of the test host answers at an address.
func answers(t *testing.T, what, address string) {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second}
	testcluster.Eventually(t, patience, what, func() error {
		response, err := client.Get("http://" + address + "/")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err == nil && !strings.Contains(string(text), "c9s test host") {
			err = fmt.Errorf("it answers %q", text)
		}
		return err
	})
}
