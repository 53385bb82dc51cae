package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSaved: with --saved, nodes start with what c9s save wrote, to the letter; without, a
// note says that it is there.
func TestSaved(t *testing.T) {
	dir := t.TempDir()
	// What looks like a template or a variable is part of a saved configuration.
	const config = "host-name edited; # {{ .Nothing }} ${HOME} $6$salt$hash {{\n"
	for name, text := range map[string]string{
		"t.clab.yml": `name: t
topology:
  nodes:
    R1: {kind: juniper_crpd, image: crpd, startup-config: seed.conf}
    R2: {kind: juniper_crpd, image: crpd}
    S1: {kind: nokia_srlinux, image: srl}
    F1: {kind: linux, image: frr, binds: ["old.conf:/etc/frr/frr.conf", "old.conf:/etc/frr/daemons"]}
    A1: {kind: linux, image: alpine}
`,
		"policy.yaml": "apiVersion: c9s.dev/v1\nkind: Policy\nsaved: true\n",
		"seed.conf":   "host-name seed;\n", "old.conf": "old\n",
		"configs/R1.conf": config, "configs/S1.json": `{"a": "{{ $HOME"}`, "configs/F1.conf": "new frr\n", "configs/R9.conf": "of nobody\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	topo := filepath.Join(dir, "t.clab.yml")
	const names = "configs/R1.conf, configs/S1.json, configs/F1.conf"
	const line, json = "host-name edited; # {{ .Nothing }} ${HOME} $6$salt$hash {{", "{{ $HOME"
	for _, tt := range []struct {
		args       []string
		note       string
		want, lack []string
	}{
		{nil, "saved configurations are not used: " + names, []string{"host-name seed;"}, []string{line, json, "new frr"}},
		{[]string{"--policy", filepath.Join(dir, "policy.yaml")}, "warning: node R1 starts with configs/R1.conf, which differs from seed.conf", []string{line, json, "new frr"}, []string{"host-name seed;"}},
		{[]string{"--saved"}, "warning: node F1 starts with configs/F1.conf, which differs from old.conf", []string{line}, nil},
		{[]string{"--saved"}, "saved configurations are used: " + names, []string{line, json, "new frr"}, []string{"host-name seed;", "of nobody"}},
	} {
		out, errs, code := run(t, append([]string{"render", topo, "--planner", "builtin"}, tt.args...)...)
		if code != 0 || !strings.Contains(errs, tt.note) {
			t.Errorf("render %v: exit code %d\n%s", tt.args, code, errs)
		}
		for _, text := range tt.want {
			if !strings.Contains(out, text) {
				t.Errorf("render %v: %q is missing", tt.args, text)
			}
		}
		for _, text := range tt.lack {
			if strings.Contains(out, text) {
				t.Errorf("render %v has %q", tt.args, text)
			}
		}
	}
}
