package lab

import (
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

// A folder of which the Secrets were not applied: the status names the node, the
// Secret and what to do, and applying them is enough.
func TestSecretsNotApplied(t *testing.T) {
	long(t)
	l := written(t, "nosecret", map[string]string{
		"secret.txt": "the licence\n",
		"c9s.yaml":   "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n  - name: s\n    set: {secretFiles: [/etc/licence]}\n",
		"lab.clab.yml": `name: nosecret
topology:
  defaults: {kind: linux, image: ghcr.io/srl-labs/network-multitool:latest}
  nodes:
    A: {binds: ["secret.txt:/etc/licence"]}
    B: {}
  links:
    - endpoints: ["A:eth1", "B:eth1"]
`})
	dir := t.TempDir()
	l.c9s(t, "render", l.topo, "-n", l.ns, "--image", c9sImage, "--planner", planner, "-o", dir)
	l.kustomize(t, dir)
	began := time.Now()
	testcluster.Eventually(t, patience, "the status to tell", func() error {
		s, err := l.tryStatus(t, "--fresh")
		if err != nil {
			return err
		}
		n := s.node("A")
		for _, want := range []string{"a Secret that the Pod mounts is missing", "apply the rendered secrets/", `secret "a-secret-`} {
			if n.State != "failed" || !strings.Contains(n.Reason, want) {
				return fmt.Errorf("A is %s: %s", n.State, n.Reason)
			}
		}
		return nil
	})
	t.Logf("told after %s", time.Since(began).Round(time.Second))
	testcluster.Eventually(t, patience, "the lab to be failed", func() error { // by the controller's word
		s, err := l.tryStatus(t)
		if err == nil && s.State != "failed" {
			err = fmt.Errorf("it is %s", s.State)
		}
		return err
	})
	l.kustomize(t, filepath.Join(dir, "secrets"))
	l.ready(t)
	if out, err := l.in(t.Context(), "A", "cat", "/etc/licence"); err != nil || out != "the licence\n" {
		t.Errorf("the file is %q, %v", out, err)
	}
	l.destroyed(t)
}

// A pull secret that does not exist is reported before anything is applied.
func TestPullSecretMissing(t *testing.T) {
	l := smallLab(t, "nopull", "registry.example.net/private/router:1")
	const policy = "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n  - name: p\n    set: {imagePullSecrets: [registry-login]}\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(l.topo), "c9s.yaml"), []byte(policy), 0o644); err != nil {
		t.Fatal(err)
	}
	l.refused(t, []string{"no pull secret registry-login, which a ", "kubectl create namespace " + l.ns, "create secret docker-registry registry-login", "nothing was applied"})
	if _, err := l.Typed.CoreV1().Namespaces().Get(t.Context(), l.ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace was created: %v", err)
	}
}

// A worker without room for an image: node, worker, cause and remedy are reported, and
// once there is room the same command continues. containerd's store is made small for
// that.
func TestFullDisk(t *testing.T) {
	long(t)
	l := smallLab(t, "full", goodImage)
	worker := l.Workers[1]
	policy := "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n  - name: p\n    set: {nodeSelector: {kubernetes.io/hostname: " + worker + "}}\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(l.topo), "c9s.yaml"), []byte(policy), 0o644); err != nil {
		t.Fatal(err)
	}
	l.deploy(t) // the worker has the c9s image now

	// An image that nobody has: a program with bytes of its own at its end.
	big := fmt.Sprintf("c9s.test/big:%d", time.Now().UnixNano())
	file, err := filepath.Abs(filepath.Join(t.TempDir(), "big"))
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "sh", "-c", `go build -o "$0" ./cmd/c9s-sidecar && head -c 16000000 /dev/urandom >>"$0"`, file)
	build.Dir, build.Env = repo, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l.Load(t, file+"="+big)
	text, err := os.ReadFile(l.topo)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "A: {}", fmt.Sprintf("A: {image: %q, cmd: help}", big), 1)
	if err := os.WriteFile(l.topo, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}

	// containerd's store becomes one of 8 MB, with the small blobs that it needs to
	// start containers of images that it has.
	const store = "/var/lib/containerd/io.containerd.content.v1.content"
	l.OnNode(t, worker, "sh", "-ec", `
		mkdir -p /mnt/c9s-store; mount --bind $0 /mnt/c9s-store; mount --make-private /mnt/c9s-store; mount -t tmpfs -o size=8m tmpfs $0
		mkdir -p $0/ingest $0/blobs/sha256
		find /mnt/c9s-store/blobs/sha256 -size -32k -exec cp -p {} $0/blobs/sha256 \;`, store)
	mounted := true
	unmount := func() {
		if mounted {
			l.OnNode(t, worker, "sh", "-ec", `
				cp -pn $0/blobs/sha256/* /mnt/c9s-store/blobs/sha256
				umount $0; umount /mnt/c9s-store; rmdir /mnt/c9s-store`, store)
			mounted = false
		}
	}
	defer unmount()
	l.refused(t, []string{"node A (small.clab.yml:5) on worker " + worker, "the worker's disk is full", "crictl rmi --prune", "no space left on device"})
	unmount()
	testcluster.Eventually(t, 2*patience, "the image to be there", func() error {
		s, err := l.tryStatus(t)
		if err != nil {
			return err
		}
		if n := s.node("A"); n.Image != big || n.Restarts == 0 { // it runs, and ends at once
			return fmt.Errorf("%+v", s.Nodes)
		}
		return nil
	})
}
