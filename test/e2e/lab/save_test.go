package lab

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// saved is a row of c9s save -o json.
type saved struct{ Node, State, Reason string }

// TestSave: what nodes have in their running configurations is saved beside the topology, and
// a lab that is destroyed and deployed with it is the same, to the letter.
func TestSave(t *testing.T) {
	l := written(t, "work", map[string]string{
		"lab.clab.yml": `name: work
topology:
  nodes:
    F1:
      kind: linux
      image: quay.io/frrouting/frr:10.2.1
      binds: ["daemons:/etc/frr/daemons", "F1.conf:/etc/frr/frr.conf"]
    R1:
      kind: juniper_crpd
      image: ghcr.io/srl-labs/network-multitool:latest
      entrypoint: sleep infinity
      startup-config: seed.conf
      binds: ["cli:/usr/bin/cli"]
    H1:
      kind: linux
      image: ghcr.io/srl-labs/network-multitool:latest
    B1:
      kind: bridge
  links:
    - endpoints: ["F1:eth1", "R1:eth1"]
    - endpoints: ["H1:eth1", "B1:eth1"]
`,
		"daemons":   "zebra=yes\nmgmtd=yes\nvtysh_enable=yes\n",
		"F1.conf":   "hostname F1\n",
		"seed.conf": "host-name {{ .ShortName }};\n",
		"cli": "#!/bin/sh\n[ -e /tmp/dies ] && echo half && kill -9 $$\n[ -e /tmp/slow ] && echo half && touch /tmp/began && sleep 60\n" +
			"[ \"$1\" = 'show configuration' ] && cat /config/juniper.conf\n",
	})
	dir := filepath.Dir(l.topo)
	l.deploy(t)
	save := func(want []saved, args ...string) {
		t.Helper()
		out, err := l.output(t, append([]string{"save", "--topo", l.topo, "-n", l.ns, "-o", "json"}, args...)...)
		var got []saved
		if err != nil || json.Unmarshal(out, &got) != nil {
			t.Fatalf("c9s save: %v\n%s", err, out)
		}
		if !slices.Equal(got, want) {
			t.Errorf("c9s save %s: %+v, want %+v", strings.Join(args, " "), got, want)
		}
	}
	// What looks like a template or a variable is part of the configuration.
	const edited = "host-name edited; # {{ .ShortName }} ${HOME} $6$salt$hash\n"
	for node, line := range map[string]string{
		"R1": "cat >/config/juniper.conf <<'END'\n" + edited + "END",
		"F1": `until vtysh -c 'show version' >/dev/null 2>&1; do sleep 1; done; vtysh -c 'configure terminal' -c 'interface lo' -c 'ip address 10.9.9.9/32'`,
	} {
		if out, err := l.in(t.Context(), node, "sh", "-c", line); err != nil {
			t.Fatalf("%s: %v\n%s", node, err, out)
		}
	}
	none := []saved{{"B1", "unsupported", "it has no container"}, {"H1", "unsupported", "it has no vtysh, so FRR does not run in it"}}
	save([]saved{none[0], {Node: "F1", State: "saved"}, none[1], {Node: "R1", State: "saved"}})
	save([]saved{{Node: "F1", State: "unchanged"}, {Node: "R1", State: "unchanged"}}, "F1", "R1")
	config := filepath.Join(dir, "configs", "R1.conf")
	if text, err := os.ReadFile(config); err != nil || string(text) != edited {
		t.Errorf("%s: %q, %v", config, text, err)
	}
	l.committed(t, dir)

	// A device that goes away in the middle costs nothing that was saved before.
	if out, err := l.in(t.Context(), "R1", "touch", "/tmp/dies"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := l.output(t, "save", "R1", "--topo", l.topo, "-n", l.ns, "-o", "json")
	if err == nil {
		t.Errorf("a device that dies in the middle counts as saved:\n%s", out)
	}
	if text, err := os.ReadFile(config); err != nil || string(text) != edited {
		t.Errorf("after a failed save, %s: %q, %v", config, text, err)
	}

	l.killedInSave(t, dir, config, edited)

	l.destroyed(t)
	if out := l.deploy(t, "--saved"); !strings.Contains(out, "saved configurations are used: configs/F1.conf, configs/R1.conf") {
		t.Errorf("deploy --saved does not name the files:\n%s", out)
	}
	if out, err := l.in(t.Context(), "R1", "cat", "/config/juniper.conf"); err != nil || out != edited {
		t.Errorf("R1 starts with %q, %v", out, err)
	}
	l.eventually(t, "F1", "10.9.9.9/32", "ip", "-4", "addr", "show", "lo")
}

// killedInSave kills a Pod in the middle of a save: what was saved before stays, and no part of the
// new configuration is left anywhere.
func (l *lab) killedInSave(t *testing.T, dir, config, want string) {
	t.Helper()
	if out, err := l.in(t.Context(), "R1", "sh", "-c", "rm /tmp/dies; touch /tmp/slow"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before := files(t, dir)
	type result struct {
		out string
		err error
	}
	ended := make(chan result, 1)
	go func() {
		out, err := l.try(t.Context(), "save", "R1", "--topo", l.topo, "-n", l.ns)
		ended <- result{out, err}
	}()
	l.eventually(t, "R1", "/tmp/began", "ls", "/tmp/began")
	old := l.pod(t, "r1")
	if err := l.Typed.CoreV1().Pods(l.ns).Delete(t.Context(), old.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	if r := <-ended; r.err == nil || !strings.Contains(r.out, "failed") {
		t.Errorf("a save whose Pod was killed ends with %v:\n%s", r.err, r.out)
	}
	if text, err := os.ReadFile(config); err != nil || string(text) != want {
		t.Errorf("after the Pod was killed, %s: %q, %v", config, text, err)
	}
	if after := files(t, dir); !slices.Equal(after, before) {
		t.Errorf("files after the Pod was killed: %v, want %v", after, before)
	}
	l.replaced(t, old)
	l.ready(t)
}

// files lists the files of a folder, but for Git's.
func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == ".git" {
			return filepath.SkipDir
		}
		out = append(out, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// committed checks that --git commits what has changed, and that alone.
func (l *lab) committed(t *testing.T, dir string) {
	t.Helper()
	git := func(args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "user.name=T", "-c", "user.email=t@example.com"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("config", "user.name", "T")
	git("config", "user.email", "t@example.com")
	git("add", "lab.clab.yml")
	l.c9s(t, "save", "F1", "R1", "--git", "--topo", l.topo, "-n", l.ns)
	if got := git("show", "--stat", "--format=%s", "--name-only"); got != "work: save the configuration of F1, R1\n\nconfigs/F1.conf\nconfigs/R1.conf" {
		t.Errorf("the commit is %q", got)
	}
	if got := git("diff", "--cached", "--name-only"); got != "lab.clab.yml" {
		t.Errorf("staged is %q", got)
	}
}
