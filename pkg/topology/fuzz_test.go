package topology

import (
	"strings"
	"testing"
)

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		tiny,
		"name: t\ntopology:\n  nodes:\n    r1: &a {kind: linux, env: {A: 1}}\n    r2: {<<: *a}\n  links:\n    - endpoints: [\"r1:e1\", \"r2:e1\"]\n",
		"{{ range seq 1 3 }}x{{ end }}",
		"name: ${X:-y}\n",
		"- a\n- b\n",
		"a: !!binary x\n",
		"? [a]\n: b\n",
		"topology:\n  links:\n    - {type: vxlan, endpoint: {node: a, interface: b}, vni: 1e9}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, diags := Load(t.Context(), &Source{Name: "f", Base: "f", Data: []byte(text)}, Options{Env: []string{"X=1"}})
		if file == nil && len(diags) == 0 {
			t.Error("nothing was read and nothing was reported")
		}
		for _, d := range diags {
			if d.Message == "" || d.Code == "" || d.File != "f" {
				t.Errorf("incomplete diagnostic %+v", d)
			}
		}
	})
}

func FuzzParseEndpoint(f *testing.F) {
	for _, seed := range []string{"a:b", "a:b:c", ":", "a:", ":b", "", "host:eth0", " a:b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		node, iface, err := ParseEndpoint(text)
		if err == nil && (node+":"+iface != text || node == "" || iface == "" || strings.Contains(node, ":")) {
			t.Errorf("ParseEndpoint(%q) = %q, %q", text, node, iface)
		}
	})
}

func FuzzExpandEnv(f *testing.F) {
	for _, seed := range []string{"$A", "${A}", "${A:-b}", "${A:=$B}", "$$", "${", "${A:-${B}}", "${A+x}", "$1", "a$b$"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, err := ExpandEnv(text, []string{"A=1", "B="})
		if err == nil && !strings.Contains(text, "$") && out != text {
			t.Errorf("ExpandEnv(%q) = %q though there is no reference", text, out)
		}
	})
}
