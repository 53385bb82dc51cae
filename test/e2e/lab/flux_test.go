package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/cgi"
	"net/http/httptest"
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

// flux is Flux's source-controller and kustomize-controller, which run beside the cluster, and
// the Git repository that they watch.
type flux struct {
	folder
	namespace string // of the GitRepository and the Kustomization
	work      string // the work tree
}

// fluxControllers are the names of Flux's modules and programs. Each has a module of its own below
// test/flux.
var fluxControllers = []string{"source", "kustomize"}

// newFlux builds and starts the controllers. They end with the test.
func newFlux(t *testing.T, f folder) *flux {
	t.Helper()
	x := &flux{folder: f, namespace: f.ns + "-flux", work: filepath.Dir(f.dir)}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(cache, "c9s-flux")
	for _, name := range fluxControllers {
		module := filepath.Join("..", "..", "flux", name)
		path := "github.com/fluxcd/" + name + "-controller"
		shell(t, module, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin+string(filepath.Separator), path)
		source := strings.TrimSpace(shell(t, module, "go", "list", "-m", "-f", "{{.Dir}}", path))
		crds := filepath.Join(source, "config", "crd", "bases")
		x.kubectl(t, "apply", "--server-side", "-f", crds)
		t.Cleanup(func() { x.cleanUp(t, "delete", "--ignore-not-found", "-f", crds) })
	}
	x.kubectl(t, "create", "namespace", x.namespace)
	t.Cleanup(func() { x.RemoveNamespace(t, x.namespace) })
	// Flux reads the artifacts of the one by HTTP from the other.
	const storage = "127.0.0.1:19790"
	for _, name := range fluxControllers {
		args := []string{"--metrics-addr=0", "--health-addr=127.0.0.1:0", "--log-level=info"}
		if name == "source" {
			args = append(args, "--storage-path="+t.TempDir(), "--storage-addr="+storage, "--storage-adv-addr="+storage)
		}
		cmd := exec.Command(filepath.Join(bin, name+"-controller"), args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+f.Kubeconfig(), "RUNTIME_NAMESPACE="+x.namespace)
		background(t, cmd)
	}
	// The controllers' finalizers need them.
	t.Cleanup(func() { x.cleanUp(t, "delete", "kustomization,gitrepository", "--all", "-n", x.namespace) })
	return x
}

// cleanUp is kubectl after the test.
func (x *flux) cleanUp(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kubectl", append([]string{"--kubeconfig", x.Kubeconfig()}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// shell runs a program in a folder, which must succeed, and returns its standard output.
func shell(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

// serve makes the work tree a repository, and serves it by HTTP. It returns the URL.
func (x *flux) serve(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	shell(t, root, "git", "init", "--quiet", "--bare", "--initial-branch=main", "lab.git")
	shell(t, x.work, "git", "init", "--quiet", "--initial-branch=main")
	shell(t, x.work, "git", "remote", "add", "origin", filepath.Join(root, "lab.git"))
	server := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(shell(t, root, "git", "--exec-path")), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"},
	})
	t.Cleanup(server.Close)
	return server.URL + "/lab.git"
}

// commit renders a topology, commits the folder and has Flux look.
func (x *flux) commit(t *testing.T, text string) (revision string) {
	t.Helper()
	x.render(t, text)
	shell(t, x.work, "git", "add", ".")
	shell(t, x.work, "git", "-c", "user.name=c9s", "-c", "user.email=c9s@example.net", "commit", "--quiet", "--message", "Edit the lab")
	shell(t, x.work, "git", "push", "--quiet", "origin", "main")
	return strings.TrimSpace(shell(t, x.work, "git", "rev-parse", "HEAD"))
}

// request has Flux reconcile an object at once, as 'flux reconcile' does.
func (x *flux) request(t *testing.T, object string) {
	t.Helper()
	x.kubectl(t, "annotate", "--overwrite", "-n", x.namespace, object, "reconcile.fluxcd.io/requestedAt="+time.Now().Format(time.RFC3339Nano))
}

// kustomization is what a test reads of the object of that kind.
type kustomization struct {
	Status struct {
		LastAppliedRevision    string
		LastHandledReconcileAt string
		Conditions             []metav1.Condition
	}
}

func (k kustomization) ready() metav1.Condition {
	for _, c := range k.Status.Conditions {
		if c.Type == "Ready" {
			return c
		}
	}
	return metav1.Condition{}
}

func (x *flux) kustomization(t *testing.T) (k kustomization) {
	t.Helper()
	out := shell(t, ".", "kubectl", "--kubeconfig", x.Kubeconfig(), "-n", x.namespace, "get", "kustomization/lab", "-o", "json")
	if err := json.Unmarshal([]byte(out), &k); err != nil {
		t.Fatal(err)
	}
	return k
}

// reconciled waits until Flux has applied a commit and finds the lab healthy. It returns how
// long that took, and the reasons that it gave before.
func (x *flux) reconciled(t *testing.T, revision string) (took time.Duration, reasons map[string]bool) {
	t.Helper()
	began := time.Now()
	reasons = map[string]bool{}
	testcluster.Eventually(t, patience, "Flux to reconcile "+revision, func() error {
		k := x.kustomization(t)
		ready := k.ready()
		if ready.Status != metav1.ConditionTrue {
			reasons[ready.Reason] = true
		}
		if ready.Status != metav1.ConditionTrue || !strings.HasSuffix(k.Status.LastAppliedRevision, revision) {
			return fmt.Errorf("it has %q, %s: %s", k.Status.LastAppliedRevision, ready.Reason, ready.Message)
		}
		return nil
	})
	return time.Since(began), reasons
}

// TestFlux: Flux keeps a lab as a Git repository has it. A commit makes the lab, another one edits
// its links live and prunes a node, drift is undone, and the lab is healthy when its nodes are.
func TestFlux(t *testing.T) {
	if os.Getenv("C9S_FLUX") == "" {
		t.Skip("builds Flux's controllers, about ten minutes the first time: set C9S_FLUX=1")
	}
	for _, program := range []string{"kubectl", "git", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not in PATH", program)
		}
	}
	l := written(t, "gitops", map[string]string{"lab.clab.yml": ""})
	x := newFlux(t, folder{lab: l, dir: filepath.Join(t.TempDir(), "manifests")})
	url := x.serve(t)
	first := x.commit(t, triangle(abLink+bcLink, "    D: {}\n"))
	if files := shell(t, x.work, "git", "ls-files"); strings.Contains(files, "secrets/lab.yaml") || !strings.Contains(files, "manifests/nodes/a.yaml") {
		t.Fatalf("the repository has\n%s", files)
	}
	x.kubectl(t, "apply", "--server-side", "-k", filepath.Join(x.dir, "secrets"))
	objects := filepath.Join(t.TempDir(), "flux.yaml")
	if err := os.WriteFile(objects, fmt.Appendf(nil, `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: lab, namespace: %[1]s}
spec: {url: %[2]s, ref: {branch: main}, interval: 1h}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: lab, namespace: %[1]s}
spec: {sourceRef: {kind: GitRepository, name: lab}, path: ./manifests, prune: true, wait: true, interval: 1h, timeout: 3m}
`, x.namespace, url), 0o644); err != nil {
		t.Fatal(err)
	}
	x.kubectl(t, "apply", "-f", objects)

	took, reasons := x.reconciled(t, first)
	if s := x.status(t, "--fresh"); s.State != "ready" {
		t.Errorf("Flux finds the lab healthy, and it is %s", s.State)
	}
	if !reasons["Progressing"] {
		t.Errorf("while nodes booted, Flux said %v", reasons)
	}
	x.reaches(t, "A", "10.9.0.2")
	before := restarts(t, l)
	t.Logf("a lab of four nodes from a commit: healthy after %s", took.Round(100*time.Millisecond))

	second := x.commit(t, triangle(abLink+acLink, ""))
	x.request(t, "gitrepository/lab")
	added := x.within(t, "A", "LOWER_UP", "ip", "link", "show", "eth2")
	x.within(t, "B", "gone", "sh", "-c", "ip link show eth2 >/dev/null 2>&1 || echo gone")
	took, _ = x.reconciled(t, second)
	t.Logf("after a commit: the new link is up after %s, Flux has reconciled %s later", added.Round(100*time.Millisecond), took.Round(100*time.Millisecond))
	if _, err := l.Typed.AppsV1().Deployments(l.ns).Get(t.Context(), "d", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("node D was not pruned: %v", err)
	}
	if _, err := l.Typed.CoreV1().Secrets(l.ns).Get(t.Context(), "c9s-wire-key", metav1.GetOptions{}); err != nil {
		t.Errorf("the wire key was pruned: %v", err)
	}
	after := restarts(t, l)
	for _, pod := range []string{"a", "b", "c"} {
		if before[pod] != after[pod] {
			t.Errorf("Pod %s was replaced or restarted: %s, then %s", pod, before[pod], after[pod])
		}
	}

	// Somebody changes what Git has otherwise.
	x.kubectl(t, "scale", "deployment", "b", "--replicas=0", "-n", l.ns)
	x.kubectl(t, "delete", "deployment", "c", "-n", l.ns)
	x.request(t, "kustomization/lab")
	testcluster.Eventually(t, patience, "the drift to be undone", func() error {
		for _, name := range []string{"b", "c"} {
			d, err := l.Typed.AppsV1().Deployments(l.ns).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if *d.Spec.Replicas != 1 {
				return fmt.Errorf("%s has %d replicas", name, *d.Spec.Replicas)
			}
		}
		return nil
	})
	x.ready(t)
	x.reaches(t, "A", "10.9.0.2")

	// Without the Kustomization there is no lab.
	x.kubectl(t, "delete", "kustomization/lab", "-n", x.namespace, "--timeout=2m")
	testcluster.Eventually(t, patience, "the namespace to go", func() error {
		_, err := l.Typed.CoreV1().Namespaces().Get(t.Context(), l.ns, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %v", err)
	})
}
