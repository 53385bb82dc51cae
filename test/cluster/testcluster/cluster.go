// Package testcluster gives tests a real Kubernetes cluster: it finds one that
// runs or starts one, and offers what tests do with it. Whatever a test makes
// through it is removed when the test ends.
//
// The calls of a package's tests share one cluster:
//
//	func TestMain(m *testing.M) { os.Exit(testcluster.Run(m, testcluster.Options{})) }
//
//	func TestPod(t *testing.T) {
//		c := testcluster.Shared(t)
//		ns := c.Namespace(t)
//		c.Apply(t, ns, manifest)
//		c.WaitReady(t, ns, "pod")
//	}
package testcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/c9s-lab/c9s/test/cluster/internal/kube"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

// Options say what cluster is wanted. The zero value is the one that `make
// cluster` starts.
type Options struct {
	Name        string   // "c9s" when empty; see also the variable C9S_CLUSTER
	Workers     int      // 3 when zero
	MTU         int      // 1500 when zero
	IPv6        bool     // dual-stack
	FakeWorkers int      // simulated workers also
	Audit       bool     // the API server logs writes, see WritesSince
	Images      []string // test images to load: "linux", "frr", "bird", or what `c9s-cluster load` takes
}

// NameVariable names the cluster that Run uses, in place of Options.Name.
const NameVariable = "C9S_CLUSTER"

// A Cluster is a running cluster.
type Cluster struct {
	Name    string
	Workers []string // names of its nodes
	IPv6    bool
	MTU     int

	Config  *rest.Config
	Typed   kubernetes.Interface
	Dynamic dynamic.Interface

	client  *kube.Client
	program string
}

// Program builds c9s-cluster from this module and returns its path.
func Program() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	const module = "github.com/c9s-lab/c9s/test/cluster"
	program := filepath.Join(cache, "c9s-cluster", "c9s-cluster")
	out, err := exec.Command("go", "build", "-o", program, module+"/cmd/c9s-cluster").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building c9s-cluster: %w\n%s", err, out)
	}
	return program, nil
}

// Start starts a cluster, or what has stopped of one that is there. started is
// false for one that was there: it is somebody else's to remove.
func Start(ctx context.Context, o Options, progress io.Writer) (c *Cluster, started bool, err error) {
	program, err := Program()
	if err != nil {
		return nil, false, err
	}
	o = o.withDefaults()
	record, err := site.Load(o.Name)
	started = errors.Is(err, site.ErrNone)
	args := []string{"up", "--name", o.Name}
	if started {
		args = append(args, o.flags()...)
	} else if err == nil { // as it is: tests ask for what they need
		args = append(args, Options{Workers: record.Workers, MTU: record.MTU, IPv6: record.IPv6, FakeWorkers: record.FakeWorkers, Audit: record.Audit}.flags()...)
	}
	up := exec.CommandContext(ctx, program, args...)
	up.Stdout, up.Stderr = progress, progress
	if err := up.Run(); err != nil {
		return nil, started, fmt.Errorf("starting cluster %s: %w", o.Name, err)
	}
	c, err = open(o.Name, program)
	if err == nil && len(o.Images) > 0 {
		err = c.load(ctx, progress, o.Images...)
	}
	return c, started, err
}

func open(name, program string) (*Cluster, error) {
	record, err := site.Load(name)
	if err != nil {
		return nil, err
	}
	client, err := kube.New(record.Kubeconfig())
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		Name: name, IPv6: record.IPv6, MTU: record.MTU,
		Config: client.Config, Typed: client.Typed, Dynamic: client.Dynamic,
		client: client, program: program,
	}
	for _, worker := range record.AllWorkers() {
		c.Workers = append(c.Workers, worker.Name())
	}
	return c, nil
}

// Down removes the cluster.
func (c *Cluster) Down(ctx context.Context, progress io.Writer) error {
	return c.run(ctx, progress, "down")
}

// Load brings images into the cluster's registry, as `c9s-cluster load` does.
func (c *Cluster) Load(t testing.TB, images ...string) {
	t.Helper()
	if err := c.load(t.Context(), os.Stderr, images...); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) load(ctx context.Context, progress io.Writer, images ...string) error {
	return c.run(ctx, progress, append([]string{"load"}, images...)...)
}

func (c *Cluster) run(ctx context.Context, progress io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, c.program, append(args, "--name", c.Name)...)
	cmd.Stdout, cmd.Stderr = progress, progress
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("c9s-cluster %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if name := os.Getenv(NameVariable); name != "" && o.Name == "" {
		o.Name = name
	}
	if o.Name == "" {
		o.Name = "c9s"
	}
	if o.Workers == 0 {
		o.Workers = 3
	}
	if o.MTU == 0 {
		o.MTU = 1500
	}
	return o
}

func (o Options) flags() []string {
	return []string{
		fmt.Sprint("--workers=", o.Workers), fmt.Sprint("--mtu=", o.MTU),
		fmt.Sprint("--ipv6=", o.IPv6), fmt.Sprint("--fake-workers=", o.FakeWorkers),
		fmt.Sprint("--audit=", o.Audit),
	}
}

// Kubeconfig is the path of the cluster's kubeconfig.
func (c *Cluster) Kubeconfig() string { return site.Cluster{Name: c.Name}.Kubeconfig() }

// OnNode runs a command in the namespaces of a worker, or of "control", and
// returns what it printed.
func (c *Cluster) OnNode(t testing.TB, node string, command ...string) string {
	t.Helper()
	out, err := c.TryOnNode(t.Context(), node, command...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TryOnNode is OnNode with an error in place of the test's end.
func (c *Cluster) TryOnNode(ctx context.Context, node string, command ...string) (string, error) {
	out, err := exec.CommandContext(ctx, c.program, append([]string{"--name", c.Name, "node", "exec", node}, command...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s on %s: %w\n%s", strings.Join(command, " "), node, err, out)
	}
	return string(out), nil
}
