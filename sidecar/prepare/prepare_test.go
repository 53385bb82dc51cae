package prepare

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/contract"
)

func podIn(dir string) Paths {
	return Paths{
		Plan: filepath.Join(dir, "plan"), Files: filepath.Join(dir, "files"), Nodes: filepath.Join(dir, "nodes"),
		Volumes: filepath.Join(dir, "volumes"), State: filepath.Join(dir, "state"), Helper: filepath.Join(dir, "helper"),
	}
}

// pod is a Pod's folders in a temporary one.
type pod struct {
	*testing.T
	Paths
}

func newPod(t *testing.T, m contract.Manifest, chunks map[string]string) pod {
	t.Helper()
	dir := t.TempDir()
	p := pod{t, podIn(dir)}
	for _, d := range []string{p.Plan, p.Files, p.Nodes, p.Volumes, p.State} {
		p.must(os.Mkdir(d, 0o755))
	}
	p.must(os.WriteFile(p.Paths.Helper, []byte("#!helper"), 0o755))
	for name, text := range chunks {
		p.must(os.MkdirAll(filepath.Dir(filepath.Join(p.Files, name)), 0o755))
		p.must(os.WriteFile(filepath.Join(p.Files, name), []byte(text), 0o644))
	}
	p.plan(m)
	return p
}

func (p pod) must(err error) {
	p.T.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p pod) plan(m contract.Manifest) {
	if m.Version == "" {
		m.Version = contract.ManifestVersion
	}
	data, err := json.Marshal(m)
	p.must(err)
	p.must(os.WriteFile(filepath.Join(p.Plan, contract.ManifestFile), data, 0o644))
}

// want says what is at a path of the node "r1": permissions and text.
func (p pod) want(name, mode, text string) {
	p.T.Helper()
	file := filepath.Join(p.Nodes, "r1", name)
	info, err := os.Lstat(file)
	if err != nil {
		p.Error(err)
		return
	}
	if got := info.Mode().String(); got != mode {
		p.Errorf("%s: mode %s, want %s", name, got, mode)
	}
	if info.Mode().IsRegular() {
		data, err := os.ReadFile(file)
		p.must(err)
		if string(data) != text {
			p.Errorf("%s: %q, want %q", name, data, text)
		}
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func file(path, text string, chunks ...string) contract.Entry {
	return contract.Entry{
		Path: path, Mode: 0o640, UID: os.Getuid(), GID: os.Getgid(),
		Digest: digest(text), Size: int64(len(text)), Chunks: chunks,
	}
}

func node(entries ...contract.Entry) contract.Manifest {
	for i := range entries { // only root gives files away
		entries[i].UID, entries[i].GID = os.Getuid(), os.Getgid()
	}
	return contract.Manifest{Nodes: []contract.ManifestNode{{Name: "R1", ID: "r1", Entries: entries}}}
}

func with(e contract.Entry, change func(*contract.Entry)) contract.Entry {
	change(&e)
	return e
}

func TestLayout(t *testing.T) {
	setuid := with(file("bin/ping", "x", "x"), func(e *contract.Entry) { e.Mode = 0o4755 })
	p := newPod(t, node(
		contract.Entry{Path: "etc", Mode: 0o555, Dir: true},
		file("etc/big", "onetwo", "big.part-000", "big.part-001"),
		with(file("etc/empty", ""), func(e *contract.Entry) { e.Chunks = nil }),
		contract.Entry{Path: "etc/link", Link: "../big"},
		contract.Entry{Path: "tmp", Mode: 0o1777, Dir: true},
		contract.Entry{Path: "tls/key", Mode: 0o600, Certificate: "tls.key", Chunks: []string{"tls/r1/tls.key"}},
		setuid,
	), map[string]string{"big.part-000": "one", "big.part-001": "two", "x": "x"})
	for range 2 { // the second time over the first
		p.must(Run(p.Paths))
		p.want("etc", "dr-xr-xr-x", "")
		p.want("etc/big", "-rw-r-----", "onetwo")
		p.want("etc/empty", "-rw-r-----", "")
		p.want("tmp", "dtrwxrwxrwx", "")
		p.want("bin", "drwxr-xr-x", "")
		p.want("bin/ping", "urwxr-xr-x", "x")
		if target, err := os.Readlink(filepath.Join(p.Nodes, "r1/etc/link")); target != "../big" {
			t.Errorf("link to %q, %v", target, err)
		}
		if _, err := os.Stat(filepath.Join(p.Nodes, "r1/tls/key")); !os.IsNotExist(err) {
			t.Errorf("a certificate that was not issued: %v", err)
		}
	}
	p.must(os.MkdirAll(filepath.Join(p.Files, "tls/r1"), 0o755))
	p.must(os.WriteFile(filepath.Join(p.Files, "tls/r1/tls.key"), []byte("key"), 0o644))
	p.must(Run(p.Paths))
	p.want("tls/key", "-rw-------", "key")
}

// What a device saved stays where the entry is a seed, and goes where it is not.
func TestSeedKeepsWhatTheDeviceSaved(t *testing.T) {
	entry := func(seed bool) contract.Manifest {
		return node(with(file("config", "seed", "c"), func(e *contract.Entry) { e.Seed = seed }))
	}
	p := newPod(t, entry(true), map[string]string{"c": "seed"})
	p.must(Run(p.Paths))
	p.want("config", "-rw-r-----", "seed")
	p.must(os.WriteFile(filepath.Join(p.Nodes, "r1/config"), []byte("saved"), 0o600))
	p.must(Run(p.Paths))
	p.want("config", "-rw-r-----", "saved")
	p.plan(entry(false))
	p.must(Run(p.Paths))
	p.want("config", "-rw-r-----", "seed")
}

// On a claim the device may have left anything in its folder.
func TestLinksOfTheDeviceLeadNowhere(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	p := newPod(t, node(file("etc/passwd", "mine", "c"), file("file", "mine", "c")), map[string]string{"c": "mine"})
	p.must(os.MkdirAll(filepath.Join(p.Nodes, "r1"), 0o755))
	p.must(os.Mkdir(outside, 0o755))
	p.must(os.WriteFile(filepath.Join(outside, "file"), []byte("theirs"), 0o644))
	p.must(os.Symlink(outside, filepath.Join(p.Nodes, "r1/etc")))
	p.must(os.Symlink(filepath.Join(outside, "file"), filepath.Join(p.Nodes, "r1/file")))
	p.must(os.WriteFile(filepath.Join(p.Nodes, "r1/saved"), []byte("saved"), 0o600))
	p.must(os.Link(filepath.Join(p.Nodes, "r1/saved"), filepath.Join(p.Nodes, "r1/.c9s-new-file")))
	if err := Run(p.Paths); err == nil {
		t.Error("a folder that leads out of the node's was accepted")
	}
	p.want("file", "-rw-r-----", "mine") // replaced, not followed
	p.want("saved", "-rw-------", "saved")
	if data, _ := os.ReadFile(filepath.Join(outside, "file")); string(data) != "theirs" {
		t.Errorf("outside the folder: %q", data)
	}
	if _, err := os.Stat(filepath.Join(outside, "passwd")); err == nil {
		t.Error("a file was written outside the folder")
	}
}

// All that is wrong is told at once, and nothing wrong is laid out.
func TestErrors(t *testing.T) {
	p := newPod(t, node(
		file("short", "whole text", "c"),
		file("absent", "x", "not-there"),
		file("good", "text", "c"),
	), map[string]string{"c": "text"})
	err := Run(p.Paths)
	for _, want := range []string{"node R1", "short: 4 bytes", "absent: staged piece", "not-there"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	p.want("good", "-rw-r-----", "text")
	left, _ := os.ReadDir(filepath.Join(p.Nodes, "r1"))
	if len(left) != 1 {
		t.Errorf("left in the folder: %v", left)
	}
	p.plan(contract.Manifest{Version: "c9s.dev/manifest/v9"})
	if err := Run(p.Paths); err == nil || !strings.Contains(err.Error(), "c9s.dev/manifest/v9") {
		t.Errorf("another version: %v", err)
	}
}

func TestPrograms(t *testing.T) {
	program := contract.Program{Version: contract.ProgramVersion, Node: "R1", Steps: []contract.Step{{Over: "create"}}}
	m := node()
	m.Volumes = []string{"shared-1"}
	m.Nodes[0].Containers = []contract.Container{
		{Name: "r1", Program: program, Payloads: []contract.Entry{file("payload-0", "text", "c")}},
		{Name: "r1-b", Program: program},
	}
	p := newPod(t, m, map[string]string{"c": "text"})
	for range 2 {
		p.must(Run(p.Paths))
		for _, name := range []string{"r1/exec", "r1/steps.json", "r1/payload-0", "r1/run", "r1-b/exec"} {
			if _, err := os.Stat(filepath.Join(p.State, contract.ExecDir, name)); err != nil {
				t.Error(err)
			}
		}
	}
	helper, err := os.Stat(filepath.Join(p.State, contract.ExecDir, "r1-b", contract.HelperFile))
	p.must(err)
	if helper.Mode() != 0o555 || helper.Size() != 8 {
		t.Errorf("helper: %s, %d bytes", helper.Mode(), helper.Size())
	}
	for _, dir := range []string{filepath.Join(p.State, contract.RunDir, "r1"), filepath.Join(p.Volumes, "shared-1")} {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != 0o777 {
			t.Errorf("%s: %v %v, want it open to all", dir, info, err)
		}
	}
}
