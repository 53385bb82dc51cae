package compile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// TestSecretsWhereverTheyAre: a licence and a private key are secret in a folder,
// under any name, and in every other place that has the same contents.
func TestSecretsWhereverTheyAre(t *testing.T) {
	const key = "# mine\n-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----\n"
	l := compileClean(t, `
name: lab
topology:
  defaults: {kind: linux, image: a}
  nodes:
    r1: {license: lic.txt}
    r2: {binds: ["lic.txt:/lic", "bundle.pem:/bundle.pem", "pki:/pki", "plain.txt:/plain"]}
    r3: {kind: ceos, startup-config: with-key.cfg, extras: {ceos-copy-to-flash: [a.key]}}
`, map[string]string{
		"lic.txt": "licence", "bundle.pem": key, "with-key.cfg": key, "a.key": "k", "plain.txt": "no secret",
		"pki/ca.crt": "-----BEGIN CERTIFICATE-----\n", "pki/server.key": "k2", "pki/node": key, "pki/copy-of-licence": "licence",
	}, Options{})
	secret := map[string]bool{}
	for _, m := range l.Node("r2").Mounts {
		if m.File != nil {
			secret[m.Target] = m.File.Secret
			continue
		}
		for _, e := range m.Dir.Entries {
			secret[m.Target+"/"+e.Path] = e.File.Secret
		}
	}
	for target, want := range map[string]bool{
		"/lic": true, "/bundle.pem": true, "/plain": false,
		"/pki/ca.crt": false, "/pki/server.key": true, "/pki/node": true, "/pki/copy-of-licence": true,
	} {
		if secret[target] != want {
			t.Errorf("%s: secret %v, want %v", target, secret[target], want)
		}
	}
	r3 := l.Node("r3")
	if !r3.StartupConfig.File.Secret || !r3.Extras.CEOSCopyToFlash[0].File.Secret {
		t.Errorf("startup-config %+v, flash %+v: both are secret", r3.StartupConfig.File, r3.Extras.CEOSCopyToFlash)
	}
}

// TestLinksOfAFolder: a symbolic link is staged as a link, and nothing outside the
// folder is read through it.
func TestLinksOfAFolder(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	for _, d := range []string{outside, filepath.Join(dir, "conf")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"outside/private": "mine", "conf/a": "a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "conf/a"), 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"in": "a", "out": outside, "up": "../outside/private", "nowhere": "/does/not/exist"} {
		if err := os.Symlink(target, filepath.Join(dir, "conf", name)); err != nil {
			t.Fatal(err)
		}
	}
	src := &topology.Source{Name: "t.clab.yml", Base: "t.clab.yml", Dir: dir, Data: []byte(
		"name: lab\ntopology: {nodes: {r1: {kind: linux, image: a, binds: ['conf:/conf']}}}")}
	f, _ := topology.Load(t.Context(), src, topology.Options{})
	l, diags := Compile(t.Context(), f, Options{})
	got := map[string]lab.DirEntry{}
	for _, e := range l.Node("r1").Mounts[0].Dir.Entries {
		got[e.Path] = e
	}
	for name, target := range map[string]string{"in": "a", "out": outside, "up": "../outside/private", "nowhere": "/does/not/exist"} {
		if got[name].Link != target {
			t.Errorf("%s: %+v, want a link to %s", name, got[name], target)
		}
	}
	if len(got) != 5 || got["a"].Mode != 0o4755 {
		t.Errorf("entries %+v: want four links, and a with mode 4755", got)
	}
	var told []string
	for _, d := range diags {
		if d.Code == CodeLinkOutside && d.Severity == diag.Warning {
			told = append(told, d.Message)
		}
	}
	if all := strings.Join(told, "\n"); len(told) != 1 || !strings.Contains(all, "link nowhere ") || !strings.Contains(all, "(and 2 more links like it)") {
		t.Errorf("reported:\n%s", all)
	}
}
