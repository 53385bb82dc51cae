package lab

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// Faults of the control plane while a lab is deployed, edited and at rest. Nothing is
// lost, nothing restarts that need not, and the status comes to say what is.
func TestControlPlaneFaults(t *testing.T) {
	long(t)
	dir := t.TempDir()
	now := edition{image: "v1", colour: "green", note: "first", links: `    - endpoints: ["A:eth1", "B:eth1"]`}
	l := newLab(t, now.write(t, dir), "edit")

	t.Run("API server away for 30 s during deploy", func(t *testing.T) {
		l.deployThrough(t)
		l.ready(t)
		l.reaches(t, "A", "10.9.0.2")
	})
	t.Run("API server away for 30 s during an edit", func(t *testing.T) {
		before := restarts(t, l)
		now.links += "\n" + `    - endpoints: ["A:eth2", "C:eth1"]`
		now.colour = "red" // B alone restarts
		now.write(t, dir)
		l.deployThrough(t)
		l.ready(t)
		l.eventually(t, "B", "red", "printenv", "COLOUR")
		l.eventually(t, "A", "LOWER_UP", "ip", "link", "show", "eth2")
		l.restartedOnly(t, before, "b")
	})
	t.Run("API server away for 30 s from a lab at rest", func(t *testing.T) {
		before := restarts(t, l)
		controller := l.controllerRestarts(t)
		flows := l.traffic(t, "A", "10.9.0.2")
		began := time.Now()
		l.killAPIServer(t, 30*time.Second)()
		testcluster.Eventually(t, patience, "the API server to answer", func() error {
			_, err := l.in(t.Context(), "A", "true")
			return err
		})
		flows.wentOn(t, began)
		l.ready(t)
		l.restartedOnly(t, before)
		if now := l.controllerRestarts(t); now != controller {
			t.Errorf("the controller restarted: %s, then %s", controller, now)
		}
	})
	t.Run("connection tracking full", func(t *testing.T) { l.fillConntrack(t) })
	t.Run("controller killed at each of its writes", func(t *testing.T) { l.killControllerAtWrites(t) })
	t.Run("etcd restored from before the last edit", func(t *testing.T) {
		l.restoreEtcd(t, func() {
			now.colour = "blue"
			now.links = strings.Split(now.links, "\n")[0]
			now.write(t, dir)
			l.deploy(t)
		})
		testcluster.Eventually(t, 2*patience, "the lab to be ready again", func() error {
			s, err := l.tryStatus(t, "--fresh")
			if err == nil && s.State != "ready" {
				err = fmt.Errorf("it is %s: %+v", s.State, s)
			}
			return err
		})
		l.deploy(t)
		l.ready(t)
		l.eventually(t, "B", "blue", "printenv", "COLOUR")
		l.reaches(t, "A", "10.9.0.2")
	})
	if !t.Failed() {
		l.destroyed(t)
	}
}

// deployThrough deploys the lab while the API server is away for 30 s, from the deploy's
// first word on.
func (l *lab) deployThrough(t *testing.T) {
	t.Helper()
	cmd := l.command(t.Context(), l.deployArgs()...)
	out := &firstWord{spoken: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-out.spoken:
	case err := <-ended:
		t.Fatalf("deploy ended without a word: %v", err)
	}
	back := l.killAPIServer(t, 30*time.Second)
	select {
	case err := <-ended:
		t.Errorf("deploy ended while the API server was away: %v\n%s", err, out)
	default:
	}
	back()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("deploy: %v\n%s", err, out)
		}
	case <-time.After(patience):
		t.Fatalf("deploy goes on for ever:\n%s", out)
	}
	t.Logf("deploy printed:\n%s", out)
}

// firstWord keeps what a command prints, and closes spoken as soon as there is
// something.
type firstWord struct {
	mu     sync.Mutex
	text   strings.Builder
	spoken chan struct{}
}

func (w *firstWord) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.text.Len() == 0 && len(p) > 0 {
		close(w.spoken)
	}
	return w.text.Write(p)
}

func (w *firstWord) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// killAPIServer kills the API server whenever it starts, for a time that begins now. The
// function that it returns waits for the end of that.
func (l *lab) killAPIServer(t *testing.T, d time.Duration) (wait func()) {
	t.Helper()
	ended := make(chan struct{})
	began := make(chan struct{})
	go func() {
		defer close(ended)
		first := true
		for end := time.Now().Add(d); time.Now().Before(end); {
			l.OnNode(t, "control", "sh", "-c", "kill -9 $(pidof kube-apiserver) 2>/dev/null; true")
			if first {
				close(began)
				first = false
			}
			select {
			case <-time.After(500 * time.Millisecond):
			case <-t.Context().Done():
				return
			}
		}
	}()
	<-began
	return func() { <-ended }
}

// restartedOnly checks that no Pod but those of some nodes is another one or restarted.
func (l *lab) restartedOnly(t *testing.T, before map[string]string, names ...string) {
	t.Helper()
	after := restarts(t, l)
	for name, was := range before {
		expected := false
		for _, n := range names {
			expected = expected || n == name
		}
		if !expected && after[name] != was {
			t.Errorf("%s restarted: it was %s and is %s", name, was, after[name])
		}
	}
}

func (l *lab) controllerRestarts(t *testing.T) string {
	t.Helper()
	pod := l.controller(t)
	return fmt.Sprint(pod.Name, " ", pod.Status.ContainerStatuses[0].RestartCount)
}

func (l *lab) controller(t *testing.T) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	testcluster.Eventually(t, patience, "the controller", func() error {
		list, err := l.Typed.CoreV1().Pods(l.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "c9s.dev/component=controller"})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if p := &list.Items[i]; p.DeletionTimestamp == nil && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Running != nil {
				pod = p
				return nil
			}
		}
		return fmt.Errorf("%d Pods, none runs", len(list.Items))
	})
	return pod
}

// killControllerAtWrites gives the controller something to write, and kills it as soon
// as each of its writes is seen. In the end what it has written is what is.
func (l *lab) killControllerAtWrites(t *testing.T) {
	before := restarts(t, l)
	for _, written := range []string{"c9s-addresses", "c9s-status"} {
		version := func() string {
			cm, err := l.Typed.CoreV1().ConfigMaps(l.ns).Get(t.Context(), written, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return cm.ResourceVersion
		}
		old := version()
		controller := l.controller(t)
		if err := l.Typed.CoreV1().Pods(l.ns).Delete(t.Context(), l.pod(t, "c").Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		testcluster.Eventually(t, patience, "a write of "+written, func() error {
			if version() == old {
				return fmt.Errorf("none yet")
			}
			return nil
		})
		l.KillContainer(t, controller, "controller")
		l.ready(t)
	}
	l.restartedOnly(t, before, "c")
	testcluster.Eventually(t, patience, "the controller's word to be what is", func() error {
		told, err := l.tryStatus(t)
		if err != nil {
			return err
		}
		fresh, err := l.tryStatus(t, "--fresh")
		if err != nil {
			return err
		}
		if told.State != "ready" || len(told.Links) != len(fresh.Links) || told.node("C").PodName != fresh.node("C").PodName {
			return fmt.Errorf("it says %+v, and it is %+v", told, fresh)
		}
		cm, err := l.Typed.CoreV1().ConfigMaps(l.ns).Get(t.Context(), "c9s-addresses", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, name := range []string{"a", "b", "c"} {
			pod, err := l.tryPod(t, name)
			if err != nil {
				return err
			}
			if !strings.Contains(fmt.Sprint(cm.Data), `"`+pod.Status.PodIP+`"`) {
				return fmt.Errorf("the address %s of %s is not in %v", pod.Status.PodIP, name, cm.Data)
			}
		}
		return nil
	})
}

// fillConntrack leaves no room for new connections in the kernel's tables for 20 s. Wires
// do not need any; what runs goes on, and nothing restarts.
func (l *lab) fillConntrack(t *testing.T) {
	before := restarts(t, l)
	const limit = "/proc/sys/net/netfilter/nf_conntrack_max"
	was, err := os.ReadFile(limit)
	if err != nil {
		t.Fatal(err)
	}
	restore := func() {
		if err := os.WriteFile(limit, was, 0o644); err != nil {
			t.Error(err)
		}
	}
	defer restore()
	flows := l.traffic(t, "A", "10.9.0.2")
	began := time.Now()
	if err := os.WriteFile(limit, []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	select {
	case <-time.After(20 * time.Second):
	case <-t.Context().Done():
	}
	restore()
	testcluster.Eventually(t, patience, "A to run commands", func() error {
		_, err := l.in(t.Context(), "A", "true")
		return err
	})
	flows.wentOn(t, began)
	l.ready(t)
	l.restartedOnly(t, before)
}

// restoreEtcd copies etcd's data, lets edit do its work, and puts the copy in the data's
// place, as an administrator does after a loss.
func (l *lab) restoreEtcd(t *testing.T, edit func()) {
	t.Helper()
	dir := strings.TrimSpace(l.OnNode(t, "control", "sh", "-c", `tr '\0' '\n' </proc/$(pidof etcd)/cmdline | sed -n 's/^--data-dir=//p'`))
	if dir == "" {
		t.Fatal("etcd has no --data-dir")
	}
	l.OnNode(t, "control", "sh", "-ec", `kill -STOP $(pidof etcd); rm -rf "$0.copy"; cp -a "$0" "$0.copy"; kill -CONT $(pidof etcd)`, dir)
	defer l.OnNode(t, "control", "rm", "-rf", dir+".lost")
	edit()
	l.OnNode(t, "control", "sh", "-ec", `
		kill -9 $(pidof etcd); mv "$0" "$0.lost"; mv "$0.copy" "$0"
		kill -9 $(pidof kube-apiserver) $(pidof kube-controller-manager) $(pidof kube-scheduler)`, dir)
	// What has caches starts again, as Kubernetes asks for after a restore: versions that
	// were given to other objects before would be taken for known.
	for _, worker := range l.Workers {
		l.OnNode(t, worker, "sh", "-c", "kill -9 $(pidof kubelet)")
	}
	testcluster.Eventually(t, patience, "the API server to answer", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := l.Typed.CoreV1().Namespaces().Get(ctx, l.ns, metav1.GetOptions{})
		return err
	})
}
