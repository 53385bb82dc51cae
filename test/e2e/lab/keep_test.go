package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// TestKeepWork: what is not saved is marked, shown and asked for; a paused lab comes back; a lab
// that expires is removed by its own controller, after a warning.
func TestKeepWork(t *testing.T) {
	l := written(t, "keep", map[string]string{
		"lab.clab.yml": `name: keep
topology:
  nodes:
    R1:
      kind: juniper_crpd
      image: ghcr.io/srl-labs/network-multitool:latest
      entrypoint: sleep infinity
      startup-config: seed.conf
      binds: ["cli:/usr/bin/cli"]
`,
		"seed.conf": "host-name seed;\n",
		"cli":       "#!/bin/sh\ncat /config/juniper.conf\n",
	})
	dir := filepath.Dir(l.topo)
	if out := l.deploy(t, "--ttl", "10m", "--owner", "somebody"); !strings.Contains(out, "what you configure on R1 is lost when its Pod is replaced") {
		t.Errorf("deploy does not report the node that keeps nothing:\n%s", out)
	}
	where := []string{"--topo", l.topo, "-n", l.ns}
	with := func(args ...string) []string { return append(args, where...) }
	l.c9s(t, with("save")...)
	if out, err := l.in(t.Context(), "R1", "sh", "-c", "echo 'host-name edited;' >/config/juniper.conf"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out := l.c9s(t, with("diff", "--config", "R1")...); !strings.Contains(out, "--- saved/R1.conf\n+++ running/R1.conf\n") || !strings.Contains(out, "-host-name seed;\n+host-name edited;\n") {
		t.Errorf("diff --config prints\n%s", out)
	}
	if out := l.c9s(t, with("status", "--unsaved")...); !strings.Contains(out, "unsaved") {
		t.Errorf("status --unsaved prints\n%s", out)
	}
	for _, args := range [][]string{{"restart", "R1"}, {"stop", "R1"}, {"pause"}, {"destroy"}} {
		if out, err := l.try(t.Context(), with(args...)...); err == nil || !strings.Contains(out, "terminal") {
			t.Errorf("c9s %v does not ask: %v\n%s", args, err, out)
		}
	}
	l.asksAtRedeploy(t)
	l.c9s(t, with("pause", "--save")...)
	if text, err := os.ReadFile(filepath.Join(dir, "configs/R1.conf")); err != nil || string(text) != "host-name edited;\n" {
		t.Errorf("pause --save saved %q, %v", text, err)
	}
	if s := l.status(t); s.State != "stopped" {
		t.Errorf("a paused lab is %s", s.State)
	}
	l.c9s(t, with("resume")...)
	l.ready(t)

	var labs []struct {
		Name, Owner string
		Expires     time.Time
	}
	if out, err := l.output(t, "labs", "-n", l.ns, "-o", "json"); err != nil || json.Unmarshal(out, &labs) != nil {
		t.Fatalf("c9s labs: %v\n%s", err, out)
	}
	if len(labs) != 1 || labs[0].Owner != "somebody" || time.Until(labs[0].Expires) <= 0 || time.Until(labs[0].Expires) > 10*time.Minute {
		t.Errorf("labs: %+v", labs)
	}
	user := *l
	for name, want := range map[string]int{"somebody": 1, "nobody": 0} {
		user.kubeconfig = l.actingAs(t, name)
		if got := user.own(t); len(got) != want {
			t.Errorf("labs --mine of %s: %v", name, got)
		}
	}
	l.c9s(t, with("extend", "--by", "1h")...)
	if out := l.c9s(t, "labs", "-n", l.ns); !strings.Contains(out, "in 6") {
		t.Errorf("labs after extend:\n%s", out)
	}
	// The time comes now, not in an hour.
	past := fmt.Sprintf(`{"metadata":{"annotations":{"c9s.dev/expires":%q}}}`, time.Now().Add(-time.Minute).UTC().Format(time.RFC3339))
	if _, err := l.Typed.CoreV1().ConfigMaps(l.ns).Patch(t.Context(), "c9s-expiry", "application/merge-patch+json", []byte(past), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	testcluster.Eventually(t, patience, "the warning", func() error {
		events, err := l.Typed.CoreV1().Events(l.ns).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=LabExpires,type=Warning"})
		if err == nil && len(events.Items) == 0 {
			err = fmt.Errorf("there is none")
		}
		return err
	})
	testcluster.Eventually(t, patience, "the lab to be removed", func() error {
		left := 0
		deployments, err := l.Typed.AppsV1().Deployments(l.ns).List(t.Context(), metav1.ListOptions{})
		if err == nil {
			left += len(deployments.Items)
			roles, failed := l.Typed.RbacV1().Roles(l.ns).List(t.Context(), metav1.ListOptions{})
			if err = failed; err == nil {
				left += len(roles.Items)
			}
		}
		if err == nil {
			_, failed := l.Typed.CoreV1().ConfigMaps(l.ns).Get(t.Context(), "c9s-directory", metav1.GetOptions{})
			if !apierrors.IsNotFound(failed) {
				left++
			}
		}
		if err == nil && left > 0 {
			err = fmt.Errorf("%d objects are left", left)
		}
		return err
	})
	if out := l.c9s(t, "labs", "--orphans", "-n", l.ns); !strings.Contains(out, "namespace that c9s created, without a lab") {
		t.Errorf("labs --orphans prints\n%s", out)
	}
}

// asksAtRedeploy: a deploy that restarts a node with unsaved work asks before it, and --save saves it,
// without disturbing the events of -o json.
func (l *lab) asksAtRedeploy(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(l.topo)
	if err != nil {
		t.Fatal(err)
	}
	change := func(value string) {
		t.Helper()
		if err := os.WriteFile(l.topo, []byte(strings.Replace(string(text), "      startup-config:", "      env: {A: "+value+"}\n      startup-config:", 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	change("one")
	old := l.pod(t, "r1").UID
	args := []string{"deploy", l.topo, "-n", l.ns, "--image", c9sImage, "--planner", planner}
	out, err := l.atTerminal(t, "y\nn\n", args...)
	if err == nil || !strings.Contains(out, "The running configuration of R1 is not saved. Restart and lose it?") || !strings.Contains(out, "nothing was changed") {
		t.Errorf("a deploy that restarts R1: %v\n%s", err, out)
	}
	if l.pod(t, "r1").UID != old {
		t.Error("R1 was restarted after no for an answer")
	}
	events, err := l.output(t, append(args, "--yes", "--save", "--saved", "-o", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(events)) {
		var event struct{ Event string }
		if err := json.Unmarshal([]byte(line), &event); err != nil || event.Event == "" {
			t.Errorf("deploy --save -o json prints %q: %v", line, err)
		}
	}
	if l.pod(t, "r1").UID == old {
		t.Error("R1 was not restarted")
	}
	if out, err := l.in(t.Context(), "R1", "cat", "/config/juniper.conf"); err != nil || out != "host-name edited;\n" {
		t.Errorf("after deploy --save --saved, R1 has %q, %v", out, err)
	}
}

// TestKeepDataOfLabThatExpires: destroy --keep-data keeps the data of a lab that expires, though the
// object goes that owns it, and the next deploy finds it.
func TestKeepDataOfLabThatExpires(t *testing.T) {
	l := written(t, "ttl", map[string]string{
		"lab.clab.yml": `name: ttl
topology:
  nodes:
    R1:
      kind: juniper_crpd
      image: ghcr.io/srl-labs/network-multitool:latest
      entrypoint: sleep infinity
      startup-config: seed.conf
`,
		"seed.conf": "host-name seed;\n",
		"c9s.yaml":  "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n  - name: keep\n    set: {persistence: {enabled: true, size: 64Mi}}\n",
	})
	l.volume(t, "r1-data", l.Workers[0])
	l.deploy(t, "--ttl", "1h", "--owner", "somebody")
	if out, err := l.in(t.Context(), "R1", "sh", "-c", "echo 'host-name edited;' >/config/juniper.conf"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	claim, err := l.Typed.CoreV1().PersistentVolumeClaims(l.ns).Get(t.Context(), "r1-data", metav1.GetOptions{})
	if err != nil || len(claim.OwnerReferences) != 1 {
		t.Fatalf("the claim: %+v, %v", claim.OwnerReferences, err)
	}
	l.c9s(t, "destroy", "ttl", "-n", l.ns, "--keep-data", "--yes")
	// The garbage collector would delete what still has an owner that is gone.
	testcluster.Eventually(t, patience, "the claim to have no owner", func() error {
		kept, err := l.Typed.CoreV1().PersistentVolumeClaims(l.ns).Get(t.Context(), "r1-data", metav1.GetOptions{})
		if err == nil && (kept.UID != claim.UID || kept.DeletionTimestamp != nil || len(kept.OwnerReferences) > 0) {
			err = fmt.Errorf("%+v", kept.ObjectMeta)
		}
		return err
	})
	user := *l
	user.kubeconfig = l.actingAs(t, "somebody")
	if out := user.c9s(t, "labs", "--mine", "-n", l.ns); !strings.Contains(out, "data only") {
		t.Errorf("labs --mine does not list the data:\n%s", out)
	}
	l.deploy(t, "--ttl", "1h", "--owner", "somebody")
	if out, err := l.in(t.Context(), "R1", "cat", "/config/juniper.conf"); err != nil || out != "host-name edited;\n" {
		t.Errorf("after a deploy, R1 has %q, %v", out, err)
	}
	l.c9s(t, "destroy", "ttl", "-n", l.ns, "--keep-data", "--yes")
	user.c9s(t, "destroy", "--all", "--mine", "-n", l.ns, "--yes") // its data too
	l.gone(t)
	l.OnNode(t, l.Workers[0], "rm", "-rf", filepath.Join("/var/lib/c9s-e2e", l.ns))
}
