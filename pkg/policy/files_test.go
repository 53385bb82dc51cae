package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// TestFiles: the files of all profiles add up, the first one counts for each path.
func TestFiles(t *testing.T) {
	l, _ := apply(t, `
- name: tokens
  priority: 1
  match: {names: [leaf*]}
  set:
    files:
      - {path: /etc/token, secret: tokens, key: a}
- name: all
  set:
    files: [{path: /etc/token/, secret: other}, {path: /opt/run.sh, configMap: scripts, key: run, mode: execute}]
`)
	var got []string
	for _, f := range l.Node("leaf1").Policy.Files {
		got = append(got, strings.Join([]string{f.Path, f.Secret, f.ConfigMap, f.Key, f.Pos.String()}, " "))
	}
	want := []string{"/etc/token tokens  a c9s.yaml:10:9", "/opt/run.sh  scripts run c9s.yaml:13:49"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if files := l.Node("spine1").Policy.Files; len(files) != 2 || files[0].Secret != "other" || files[1].Mode != 0o555 || files[0].Mode != 0o444 {
		t.Errorf("%+v", files)
	}
}

func TestInvalidFiles(t *testing.T) {
	for entry, want := range map[string]string{
		"{secret: a}":                             `files: path "" is not an absolute path in the node`,
		"{path: etc/x, secret: a}":                `files: path "etc/x" is not an absolute path in the node`,
		"{path: /, secret: a}":                    `files: path "/" is not an absolute path in the node`,
		"{path: /x}":                              `files: the file /x needs either secret or configMap`,
		"{path: /x, secret: a, configMap: b}":     `files: the file /x needs either secret or configMap`,
		"{path: /x, secret: A}":                   `files: the file /x: "A" cannot be the name of a Secret or ConfigMap`,
		"{path: /x, secret: a, key: ../b}":        `files: the file /x: "../b" cannot be a key of a Secret or ConfigMap`,
		"{path: /x, secret: a, mode: '0600'}":     `files: the file /x: mode "0600" is not read or execute`,
		"{path: /y, secret: a, keys: b}":          `unknown key "keys" in files[]`,
		"{path: /first, configMap: b, key: a/b/}": `files: the file /first: "a/b/" cannot be a key of a Secret or ConfigMap`,
		"{path: /first/., secret: a}":             `files: /first/. is there twice (first at line 6)`,
	} {
		text := "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n- name: a\n  set: {files: [\n    {path: /first, secret: a},\n    " + entry + "]}\n"
		_, diags := Load("c9s.yaml", []byte(text))
		if len(diags) != 1 || diags[0].Message != want || diags[0].Line != 7 || diags[0].Severity != diag.Error {
			t.Errorf("%s: %v, want %s", entry, diags, want)
		}
	}
}
