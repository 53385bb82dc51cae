package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// lab is one lab in a namespace of its own.
type lab struct {
	*testcluster.Cluster
	topo string // path of the topology
	name string
	ns   string
	// kubeconfig is a user's, "" for the administrator's.
	kubeconfig string
}

// state is what the tests read of c9s status -o json.
type state struct {
	State string `json:"state"`
	Nodes []node `json:"nodes"`
	Links []struct {
		A, B struct {
			Node, Interface string
			Carrier         bool
		}
		Up       bool
		Reason   string
		Datapath string
	} `json:"links"`
}

// node is one of the lab's.
type node struct {
	Name, State, Reason, Image, Pod, PodName, Worker, IPv4, IPv6 string
	Restarts                                                     int
	MeshPeers                                                    int
	MeshLost                                                     []string
	Commands                                                     []command
}

// node is the one of that name; without a name for none.
func (s state) node(name string) node {
	for _, n := range s.Nodes {
		if n.Name == name {
			return n
		}
	}
	return node{}
}

// command is what became of one of a node's commands.
type command struct {
	Command  string
	User     bool
	Running  bool
	ExitCode int
	Error    string
	Output   string
}

// patience is how long a test waits for what must come. It is no measure of how fast
// c9s is: that is logged.
const patience = 3 * time.Minute

// long leaves a test out of short runs.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out of a short run (-short): it takes minutes")
	}
}

// newLab names a lab; it is removed when the test ends, whatever became of it.
func newLab(t *testing.T, topo, name string) *lab {
	t.Helper()
	return newLabOn(t, testcluster.Shared(t), topo, name)
}

// newLabOn is newLab for a cluster of the test's own.
func newLabOn(t *testing.T, c *testcluster.Cluster, topo, name string) *lab {
	t.Helper()
	l := &lab{Cluster: c, topo: topo, name: name, ns: fmt.Sprintf("lab-%s-%d", strings.ToLower(name), time.Now().UnixNano()%1e9)}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := l.try(context.Background(), "status", name, "-n", l.ns)
			t.Logf("c9s status:\n%s", out)
		}
		if _, err := c.Typed.CoreV1().Namespaces().Get(context.Background(), l.ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			c.RemoveNamespace(t, l.ns)
		}
	})
	return l
}

// background starts a program that ends with the test. What it says last is logged if the test
// fails.
func background(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(cmd.Path), said.Bytes()[max(0, said.Len()-4000):])
		}
	})
}

// command is c9s with the cluster's kubeconfig.
func (l *lab) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	config := l.kubeconfig
	if config == "" {
		config = l.Kubeconfig()
	}
	cmd.Env = append(os.Environ(), "KUBECONFIG="+config)
	return cmd
}

// try runs c9s and returns what it printed, its standard output first.
func (l *lab) try(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := l.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	return stdout.String() + stderr.String(), err
}

// c9s runs c9s, which must succeed.
func (l *lab) c9s(t *testing.T, args ...string) string {
	t.Helper()
	out, err := l.try(t.Context(), args...)
	if err != nil {
		t.Fatalf("c9s %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// deploy deploys the lab's topology.
func (l *lab) deploy(t *testing.T, args ...string) string {
	t.Helper()
	return l.c9s(t, append(l.deployArgs(), args...)...)
}

func (l *lab) deployArgs() []string {
	return []string{"deploy", l.topo, "-n", l.ns, "--image", c9sImage, "--planner", planner, "--yes"}
}

// args name the lab on the command line; one without a name is the only one of
// its namespace.
func (l *lab) args(command string) []string {
	args := []string{command, "-n", l.ns}
	if l.name != "" {
		args = append(args, l.name)
	}
	return args
}

// status asks for the lab's state.
func (l *lab) status(t *testing.T, args ...string) state {
	t.Helper()
	s, err := l.tryStatus(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tryStatus is status for those who ask again.
func (l *lab) tryStatus(t *testing.T, args ...string) (s state, err error) {
	t.Helper()
	out, err := l.output(t, append(l.args("status"), append([]string{"-o", "json"}, args...)...)...)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("c9s status: %w\n%s", err, out)
	}
	return s, nil
}

// output runs c9s for its standard output alone.
func (l *lab) output(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	cmd := l.command(t.Context(), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("c9s %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}

// in runs a command in a node.
func (l *lab) in(ctx context.Context, node string, argv ...string) (string, error) {
	return l.try(ctx, append([]string{"exec", node, "-n", l.ns, "--"}, argv...)...)
}

// eventually repeats a command in a node until its output has the text.
func (l *lab) eventually(t *testing.T, node, text string, argv ...string) {
	t.Helper()
	testcluster.Eventually(t, patience, fmt.Sprintf("%q of %s in %s", text, strings.Join(argv, " "), node), func() error {
		out, err := l.in(t.Context(), node, argv...)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %s", err, out)
		case !strings.Contains(out, text):
			return fmt.Errorf("it prints %s", out)
		}
		return nil
	})
}

// reaches pings from a node until an answer comes.
func (l *lab) reaches(t *testing.T, from, to string) {
	t.Helper()
	l.eventually(t, from, " 0% packet loss", "ping", "-c", "1", "-W", "1", to)
}

// ready waits until every node is ready and every link is up.
func (l *lab) ready(t *testing.T) {
	t.Helper()
	testcluster.Eventually(t, patience, "lab "+l.name+" to be ready", func() error {
		s, err := l.tryStatus(t, "--fresh")
		if err == nil && s.State != "ready" {
			err = fmt.Errorf("it is %s: %+v", s.State, s)
		}
		return err
	})
}

// allWorkers waits until the scheduler may choose any worker, for tests that want
// Pods on several.
func (l *lab) allWorkers(t *testing.T) {
	t.Helper()
	testcluster.Eventually(t, patience, "all workers to be ready", func() error {
		for _, name := range l.Workers {
			worker, err := l.Typed.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			ready := false
			for _, c := range worker.Status.Conditions {
				ready = ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}
			if !ready || worker.Spec.Unschedulable || len(worker.Spec.Taints) > 0 {
				return fmt.Errorf("worker %s: ready %v, unschedulable %v, taints %v", name, ready, worker.Spec.Unschedulable, worker.Spec.Taints)
			}
		}
		return nil
	})
}

// pod is a node's present Pod.
func (l *lab) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod, err := l.tryPod(t, name)
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// tryPod is pod for those who ask again.
func (l *lab) tryPod(t *testing.T, name string) (*corev1.Pod, error) {
	t.Helper()
	list, err := l.Typed.CoreV1().Pods(l.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "c9s.dev/pod=" + name})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			return &list.Items[i], nil
		}
	}
	return nil, fmt.Errorf("%s has no Pod", name)
}

// destroyed takes the lab away and finds nothing left.
func (l *lab) destroyed(t *testing.T) {
	t.Helper()
	l.c9s(t, "destroy", l.name, "-n", l.ns, "--yes")
	l.gone(t)
	// The kernel takes a Pod's interfaces away some time after the Pod.
	testcluster.Eventually(t, patience, "no interface of c9s on the workers", func() error {
		for _, worker := range l.Workers {
			links := l.OnNode(t, worker, "ip", "-o", "link")
			for _, own := range []string{"c9sl", "c9sv", "c9si", "c9so", "c9sr0", "c9sm"} {
				if strings.Contains(links, own) {
					return fmt.Errorf("worker %s has an interface %s left:\n%s", worker, own, links)
				}
			}
		}
		return nil
	})
}

// gone waits until Kubernetes has deleted the lab's namespace, in which nothing of it is left.
func (l *lab) gone(t *testing.T) {
	t.Helper()
	left, err := l.Typed.CoreV1().ConfigMaps(l.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=c9s"})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("%d ConfigMaps of the lab are left, %v", len(left.Items), err)
	}
	pods, err := l.Typed.CoreV1().Pods(l.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) > 0 {
		t.Errorf("%d Pods of the lab are left, %v", len(pods.Items), err)
	}
	testcluster.Eventually(t, patience, "the end of namespace "+l.ns, func() error {
		if _, err := l.Typed.CoreV1().Namespaces().Get(t.Context(), l.ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
}

func testdata(name string) string { return filepath.Join(repo, "testdata", name) }
