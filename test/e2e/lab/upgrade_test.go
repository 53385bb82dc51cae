package lab

import (
	"context"
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// before is the last commit whose labs have two Services and two ConfigMaps per node.
const before = "377f4ed"

// older builds c9s and its image from an earlier commit, and loads the image.
func older(t *testing.T, c *testcluster.Cluster, commit string) (binary, image string) {
	t.Helper()
	dir := t.TempDir()
	run := func(at string, argv ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir = at
		return cmd.CombinedOutput()
	}
	if out, err := run(repo, "git", "cat-file", "-e", commit+"^{commit}"); err != nil {
		t.Skipf("commit %s is not in this clone: %v\n%s", commit, err, out)
	}
	binary, image = filepath.Join(dir, "c9s"), c9sImage+"-"+commit
	layout := filepath.Join(dir, "image")
	for _, step := range []struct {
		at   string
		argv []string
	}{
		{repo, []string{"git", "archive", "-o", filepath.Join(dir, "source.tar"), commit}},
		{dir, []string{"tar", "xf", "source.tar"}},
		{dir, []string{"go", "build", "-buildvcs=false", "-o", binary, "./cmd/c9s"}},
		{dir, []string{binary, "image", "build", image, "--platform", "linux/amd64", "-o", layout}},
	} {
		if out, err := run(step.at, step.argv...); err != nil {
			t.Fatalf("%v: %v\n%s", step.argv, err, out)
		}
	}
	c.Load(t, layout+"="+image)
	return binary, image
}

// TestUpgrade: a lab that an earlier c9s deployed keeps its addresses, names, links and saved
// data. What restarts is said before.
func TestUpgrade(t *testing.T) {
	long(t)
	binary, image := older(t, testcluster.Shared(t), before)
	l := written(t, "upgrade", map[string]string{
		"lab.clab.yml": `name: upgrade
topology:
  defaults: {kind: linux, image: "ghcr.io/srl-labs/network-multitool:latest"}
  nodes:
    R1:
      kind: juniper_crpd
      entrypoint: sleep infinity
      startup-config: seed.conf
    PC_1: {exec: [ip addr add 10.9.0.1/24 dev eth1], labels: {role: leaf}}
    PC_2: {exec: [ip addr add 10.9.0.2/24 dev eth1], ports: ["8080:80"]}
  links:
    - endpoints: ["PC_1:eth1", "PC_2:eth1"]
    - endpoints: ["R1:eth1", "PC_1:eth2"]
`,
		"seed.conf": "host-name {{ .ShortName }};\n",
		"c9s.yaml":  "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n  - name: keep\n    match: {names: [R1]}\n    set: {persistence: {enabled: true, size: 64Mi}}\n",
	})
	l.volume(t, "r1-data", l.Workers[0])
	args := l.deployArgs()
	args[slices.Index(args, "--image")+1], args[slices.Index(args, "--planner")+1] = image, "builtin"
	cmd := l.command(t.Context(), args...)
	cmd.Path, cmd.Args[0] = binary, binary
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("deploy by %s: %v\n%s", before, err, out)
	}
	const file = "/config/juniper.conf"
	if out, err := l.in(t.Context(), "R1", "sh", "-c", "echo 'host-name saved;' >"+file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l.reaches(t, "PC_1", "10.9.0.2")
	was, allocated, pods := l.identity(t), l.allocations(t), restarts(t, l)

	for node, action := range l.diff(t) {
		if action != "recreate" {
			t.Errorf("diff says %s for %s, want recreate", action, node)
		}
	}
	out := l.deploy(t)
	for _, node := range []string{"R1", "PC_1", "PC_2"} {
		if !strings.Contains(out, node+": recreate") {
			t.Errorf("deploy does not say that it recreates %s:\n%s", node, out)
		}
	}
	// The controller is another one too, and the status is right from the start.
	for range 5 {
		if s := l.status(t); s.State != "ready" {
			t.Errorf("after the deploy the lab is %s: %+v", s.State, s)
		}
	}
	if is := l.identity(t); !slices.Equal(was, is) {
		t.Errorf("names, addresses or links changed:\n%s\nthen\n%s", strings.Join(was, "\n"), strings.Join(is, "\n"))
	}
	if now := l.allocations(t); !reflect.DeepEqual(allocated, now) {
		t.Errorf("allocations changed: %v, then %v", allocated, now)
	}
	for pod, is := range restarts(t, l) {
		if is == pods[pod] {
			t.Errorf("Pod %s was not replaced", pod)
		}
	}
	if out, err := l.in(t.Context(), "R1", "cat", file); err != nil || out != "host-name saved;\n" {
		t.Errorf("R1 has %q, want what was saved (%v)", out, err)
	}
	l.reaches(t, "PC_1", "10.9.0.2")
	l.reaches(t, "R1", "PC_2")
	services, err := l.Typed.CoreV1().Services(l.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range services.Items {
		names = append(names, s.Name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"c9s-nodes", "pc-2"}) {
		t.Errorf("the lab has the Services %v", names)
	}
	selected, err := l.Typed.CoreV1().Pods(l.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "role=leaf"})
	if err != nil || len(selected.Items) != 1 {
		t.Errorf("%d Pods have the label role=leaf, %v", len(selected.Items), err)
	}
	l.destroyed(t)
	l.OnNode(t, l.Workers[0], "rm", "-rf", filepath.Join("/var/lib/c9s-e2e", l.ns))
}

// identity is what of a lab users know it by: nodes with their addresses, and links.
func (l *lab) identity(t *testing.T) []string {
	t.Helper()
	s := l.status(t, "--fresh")
	var out []string
	for _, n := range s.Nodes {
		out = append(out, strings.Join([]string{n.Name, n.Pod, n.IPv4, n.IPv6}, " "))
	}
	for _, k := range s.Links {
		out = append(out, k.A.Node+":"+k.A.Interface+" "+k.B.Node+":"+k.B.Interface)
	}
	return out
}

// allocations are the values that the lab has from pools.
func (l *lab) allocations(t *testing.T) map[string]map[string]string {
	t.Helper()
	list, err := l.Typed.CoreV1().ConfigMaps(l.ns).List(context.Background(), metav1.ListOptions{LabelSelector: "c9s.dev/component=lab"})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]string{}
	for _, cm := range list.Items {
		if !strings.HasPrefix(cm.Name, "c9s-allocations") {
			continue
		}
		for _, text := range cm.Data {
			var part struct{ Pools map[string]map[string]string }
			if err := json.Unmarshal([]byte(text), &part); err != nil {
				t.Fatal(err)
			}
			maps.Copy(out, part.Pools)
		}
	}
	if len(out) == 0 {
		t.Fatal("the lab has no allocations")
	}
	return out
}
