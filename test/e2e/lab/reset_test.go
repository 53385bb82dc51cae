package lab

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// junosCLI stands in for the cli of a device with Junos: it shows and loads configurations.
const junosCLI = `#!/bin/sh
[ "$1" = 'show configuration' ] && exec cat /config/juniper.conf
while read -r line; do
	case $line in
	'load override '*) file=${line#load override } ;;
	commit*) grep -q BAD "$file" && echo "syntax error" && exit 0; cat "$file" >/config/juniper.conf ;;
	esac
done
`

// resetRow is a row of c9s reset -o json.
type resetRow struct{ Node, State, Reason string }

// TestReset: nodes go back to the configuration of the topology, without a restart where their
// kind can do that, and else without their data. A user with the rights of its row is enough.
func TestReset(t *testing.T) {
	l := written(t, "reset", map[string]string{
		"lab.clab.yml": `name: reset
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
    R2:
      kind: juniper_crpd
      image: ghcr.io/srl-labs/network-multitool:latest
      entrypoint: sleep infinity
      startup-config: seed.conf
      binds: ["cli:/usr/bin/cli"]
      volumes: ["records:/records"]
    H1:
      kind: linux
      image: ghcr.io/srl-labs/network-multitool:latest
`,
		"c9s.yaml":  "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n  - name: keep\n    match: {names: [R2]}\n    set: {persistence: {enabled: true, size: 64Mi}}\n",
		"daemons":   "zebra=yes\nmgmtd=yes\nstaticd=yes\nvtysh_enable=yes\n",
		"F1.conf":   "hostname F1\ninterface lo\n ip address 10.9.9.1/32\nexit\n",
		"seed.conf": "host-name seed;\n",
		"cli":       junosCLI,
	})
	dir := filepath.Dir(l.topo)
	l.volume(t, "r2-data", l.Workers[0])
	l.deploy(t)
	edit := func(node, line string) {
		t.Helper()
		if out, err := l.in(t.Context(), node, "sh", "-c", line); err != nil {
			t.Fatalf("%s: %v\n%s", node, err, out)
		}
	}
	has := func(node, file, want string) {
		t.Helper()
		if out, err := l.in(t.Context(), node, "cat", file); err != nil || out != want {
			t.Errorf("%s has %q in %s, want %q (%v)", node, out, file, want, err)
		}
	}
	reset := func(user *lab, want []resetRow, args ...string) {
		t.Helper()
		out, err := user.output(t, append([]string{"reset", "--topo", l.topo, "-n", l.ns, "-o", "json"}, args...)...)
		var got []resetRow
		if err != nil || json.Unmarshal(out, &got) != nil || !slices.Equal(got, want) {
			t.Errorf("c9s reset %v: %v\n%s\nwant %+v", args, err, out, want)
		}
	}
	const conf = "/config/juniper.conf"
	edit("F1", `until vtysh -c 'show version' >/dev/null 2>&1; do sleep 1; done; vtysh -c 'configure terminal' -c 'interface lo' -c 'ip address 10.9.9.9/32'`)
	edit("R1", "echo 'host-name edited;' >"+conf)
	edit("H1", "touch /tmp/file")
	pods := map[string]string{}
	for _, node := range []string{"f1", "r1", "r2", "h1"} {
		pods[node] = string(l.pod(t, node).UID)
	}
	user := *l
	user.kubeconfig = l.user(t, roleOf("reset", rightsOf(t, "reset")))
	reset(&user, []resetRow{
		{Node: "R1", State: "rolled back"}, {Node: "F1", State: "rolled back"},
		{"H1", "restarted", "the topology has no configuration of the node"},
	}, "R1", "F1", "H1")
	has("R1", conf, "host-name seed;\n")
	if out, err := l.in(t.Context(), "F1", "vtysh", "-c", "show running-config"); err != nil || strings.Contains(out, "10.9.9.9") || !strings.Contains(out, "10.9.9.1/32") {
		t.Errorf("F1 after its reset: %v\n%s", err, out)
	}
	if out, err := l.in(t.Context(), "H1", "ls", "/tmp/file"); err == nil {
		t.Errorf("H1 still has its file: %s", out)
	}
	for node, restarts := range map[string]bool{"f1": false, "r1": false, "h1": true} {
		if replaced := string(l.pod(t, node).UID) != pods[node]; replaced != restarts {
			t.Errorf("the Pod of %s was replaced: %t, want %t", node, replaced, restarts)
		}
	}

	// A device that rejects the configuration keeps its own.
	if err := os.WriteFile(filepath.Join(dir, "seed.conf"), []byte("BAD;\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	edit("R1", "echo 'host-name edited;' >"+conf)
	if out, err := l.try(t.Context(), "reset", "R1", "--topo", l.topo, "-n", l.ns); err == nil || !strings.Contains(out, "the device reports: syntax error") {
		t.Errorf("a configuration that is rejected: %v\n%s", err, out)
	}
	has("R1", conf, "host-name edited;\n")
	if err := os.WriteFile(filepath.Join(dir, "seed.conf"), []byte("host-name seed;\n"), 0o644); err != nil {
		t.Fatal(err)
	}

	// Work that is not saved, and data on a claim, are asked for.
	l.c9s(t, "save", "R1", "R2", "--topo", l.topo, "-n", l.ns)
	edit("R2", "echo 'host-name edited;' >"+conf+"; echo record >/records/all")
	ask := []string{"reset", "R2", "--restart", "--topo", l.topo, "-n", l.ns}
	for answers, question := range map[string]string{"n\n": "The running configuration of R2 is not saved. Reset and lose it?", "y\nn\n": "A node that has to restart loses the data on its claim."} {
		out, err := l.atTerminal(t, answers, ask...)
		if err == nil || !strings.Contains(out, question) || !strings.Contains(out, "nothing was changed") {
			t.Errorf("%q: %v\n%s", answers, err, out)
		}
	}
	has("R2", conf, "host-name edited;\n")
	has("R2", "/records/all", "record\n")
	reset(l, []resetRow{{"R2", "restarted", "--restart"}}, "R2", "--restart", "--yes")
	has("R2", conf, "host-name seed;\n")
	if out, err := l.in(t.Context(), "R2", "ls", "/records/all"); err == nil {
		t.Errorf("the volume of R2 still has its file: %s", out)
	}
	edit("R2", "echo 'host-name again;' >"+conf)
	l.c9s(t, "restart", "R2", "-n", l.ns)
	has("R2", conf, "host-name again;\n")            // later restarts keep what is saved
	l.c9s(t, "destroy", l.name, "-n", l.ns, "--yes") // the user stays in the namespace
	l.OnNode(t, l.Workers[0], "rm", "-rf", filepath.Join("/var/lib/c9s-e2e", l.ns))
}
