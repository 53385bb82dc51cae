package snapshot

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/lab"
)

func example() *Snapshot {
	return &Snapshot{
		Info: Info{
			Lab: "demo", Namespace: "demo", Created: time.Date(2026, 12, 2, 1, 0, 0, 0, time.UTC), C9s: "v1", Topology: "topo.clab.yml",
			Nodes: []Node{{Name: "R1", Kind: "juniper_crpd", From: FromRunning, File: "configs/R1.conf"}},
		},
		Allocations: &lab.Allocations{Version: lab.AllocationsVersion, Pools: map[string]map[string]string{"mgmt": {"R1": "172.20.20.2"}}},
		Files: []File{
			{Name: "bind", Mode: 0o755, Dir: true},
			{Name: "bind/run.sh", Mode: 0o755, Data: []byte("#!/bin/sh\n")},
			{Name: "configs/R1.conf", Mode: 0o600, Data: []byte("host-name edited;\n")},
			{Name: "topo.clab.yml", Mode: 0o644, Data: []byte("name: demo\n")},
		},
	}
}

// TestWriteAndRead: what is written, in either form, is read and restored as it was.
func TestWriteAndRead(t *testing.T) {
	for _, name := range []string{"before", "before.tar.gz", "before.tgz"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, name)
			want := example()
			if err := want.Write(file); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("others can read it: %v, %v", info.Mode(), err)
			}
			got, err := Read(file)
			if err != nil {
				t.Fatal(err)
			}
			got.Files = withoutFolder(got.Files, "configs") // a folder has it on its own
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-written +read:\n%s", diff)
			}
			if err := want.Write(file); err == nil || !strings.Contains(err.Error(), "exists: choose another name") {
				t.Errorf("it was replaced: %v", err)
			}
			to := filepath.Join(dir, "restored")
			if err := got.Restore(to); err != nil {
				t.Fatal(err)
			}
			for name, mode := range map[string]fs.FileMode{"bind/run.sh": 0o755, "configs/R1.conf": 0o600, "topo.clab.yml": 0o644, AllocationsFile: 0o600} {
				info, err := os.Stat(filepath.Join(to, name))
				if err != nil || info.Mode().Perm() != mode {
					t.Errorf("%s: %v, %v", name, info, err)
				}
			}
			if err := got.Restore(to); err == nil || !strings.Contains(err.Error(), "exists and is not an empty folder") {
				t.Errorf("a folder was replaced: %v", err)
			}
			left, err := filepath.Glob(filepath.Join(dir, ".c9s*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

func withoutFolder(files []File, name string) (out []File) {
	for _, f := range files {
		if !f.Dir || f.Name != name {
			out = append(out, f)
		}
	}
	return out
}

// header is an entry of an archive for the tests.
type header struct {
	name string
	kind byte
	size int64
	link string
	text string
}

func archive(t *testing.T, entries ...header) string {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	out := tar.NewWriter(zip)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		size := max(e.size, int64(len(e.text)))
		if err := out.WriteHeader(&tar.Header{Name: e.name, Typeflag: e.kind, Size: size, Linkname: e.link, Mode: 0o4777}); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write(append([]byte(e.text), make([]byte, size-int64(len(e.text)))...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a.tar.gz")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const goodInfo = `{"version": "c9s.dev/snapshot/v1", "lab": "x", "topology": "t.clab.yml"}`

// TestHostileArchives: an archive of a stranger writes nothing outside the folder, makes no
// links, and does not fill the memory.
func TestHostileArchives(t *testing.T) {
	defer func(files int, bytes int64) { maxFiles, maxBytes = files, bytes }(maxFiles, maxBytes)
	maxFiles, maxBytes = 20, 1<<20
	info, topo := header{name: "s/snapshot.json", text: goodInfo}, header{name: "s/lab/t.clab.yml", text: "name: x\n"}
	many := []header{info, topo}
	for i := range maxFiles {
		many = append(many, header{name: fmt.Sprintf("s/lab/%d", i)})
	}
	for want, entries := range map[string][]header{
		`"../etc/passwd" is not the name of a file in the snapshot`: {info, topo, {name: "s/../etc/passwd", text: "x"}},
		`"lab/../../x" is not the name of a file in the snapshot`:   {info, topo, {name: "s/lab/../../x", text: "x"}},
		`"lab//x" is not the name of a file in the snapshot`:        {info, topo, {name: "s/lab//x", text: "x"}},
		`"lab/a\\..\\b" is not the name of a file in the snapshot`:  {info, topo, {name: `s/lab/a\..\b`, text: "x"}},
		`"lab/c:x" is not the name of a file in the snapshot`:       {info, topo, {name: "s/lab/c:x", text: "x"}},
		`"lab/\x1b[2J" is not the name of a file in the snapshot`:   {info, topo, {name: "s/lab/\x1b[2J", text: "x"}},
		`it has several folders: "s" and ""`:                        {info, topo, {name: "/etc/passwd", text: "x"}},
		`it has several folders: "s" and "other"`:                   {info, topo, {name: "other/x", text: "x"}},
		`"passwd" is not in the folder of the snapshot`:             {{name: "passwd", text: "x"}},
		`"s/lab/link": it is not a file or a folder`:                {info, topo, {name: "s/lab/link", kind: tar.TypeSymlink, link: "/etc"}},
		`"s/lab/hard": it is not a file or a folder`:                {info, topo, {name: "s/lab/hard", kind: tar.TypeLink, link: "s/lab/t.clab.yml"}},
		`"s/lab/fifo": it is not a file or a folder`:                {info, topo, {name: "s/lab/fifo", kind: tar.TypeFifo}},
		`"s/lab/disk": it is not a file or a folder`:                {info, topo, {name: "s/lab/disk", kind: tar.TypeBlock}},
		`lab/t.clab.yml is there twice`:                             {info, topo, topo},
		`it has more than 20 files`:                                 many,
		`it has more than 1 MiB`:                                    {info, topo, {name: "s/lab/big", size: 1<<20 + 1}},
		`it is not a snapshot: it has no snapshot.json`:             {topo},
		`it has no topology "t.clab.yml"`:                           {info},
		`it has no topology "../t.clab.yml"`:                        {{name: "s/snapshot.json", text: strings.Replace(goodInfo, "t.clab", "../t.clab", 1)}, topo},
		`it has no folder "../kinds"`:                               {{name: "s/snapshot.json", text: strings.Replace(goodInfo, "}", `, "kinds": "../kinds"}`, 1)}, topo},
		`its version is "c9s.dev/snapshot/v9", and this c9s reads`:  {{name: "s/snapshot.json", text: strings.Replace(goodInfo, "/v1", "/v9", 1)}, topo},
		`allocations.json: reading allocations`:                     {info, topo, {name: "s/allocations.json", text: "["}},
		`snapshot.json: `:                                           {{name: "s/snapshot.json", text: "["}, topo},
	} {
		_, err := Read(archive(t, entries...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	s, err := Read(archive(t, info, topo, header{name: "s/lab/setuid", text: "x"}))
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "to")
	if err := s.Restore(to); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(to, "setuid")); err != nil || info.Mode() != 0o755 {
		t.Errorf("mode %v, %v: neither setuid nor writable for others", info.Mode(), err)
	}
}

// TestDamaged: an archive that is cut off or changed is not restored.
func TestDamaged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.tar.gz")
	if err := example().Write(file); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(whole)
	changed[len(changed)-6] ^= 1 // the checksum
	for name, data := range map[string][]byte{"half": whole[:len(whole)/2], "without its end": whole[:len(whole)-4], "changed": changed, "empty": nil, "text": []byte("name: demo\n")} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Read(file); err == nil {
			t.Errorf("%s: read as %+v", name, s.Info)
		}
	}
}

// TestHostileFolder: links in the folder of a snapshot are not followed.
func TestHostileFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	if err := example().Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "lab", "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "lab/link: it is not a file or a folder") {
		t.Errorf("error %v", err)
	}
}

func TestSubnet(t *testing.T) {
	for _, c := range []struct {
		base string
		n    int
		want string
	}{
		{"172.20.20.0/24", 1, "172.20.21.0/24"},
		{"172.20.20.0/24", 300, "172.21.64.0/24"},
		{"192.168.255.0/24", 1, "192.168.0.0/24"},
		{"10.1.2.128/25", 1, "10.1.3.0/25"},
		{"172.20.0.0/16", 12, "172.16.0.0/16"},
		{"203.0.113.0/24", 1, "203.0.114.0/24"},
		{"3fff:172:20:20::/64", 7, "3fff:172:20:27::/64"},
		{"3fff:172:20:ffff::/64", 1, "3fff:172:20::/64"},
		{"172.20.0.0/16", 16, "172.16.0.0/12 has no room for 16 more networks as large as 172.20.0.0/16"},
	} {
		p, err := Subnet(netip.MustParsePrefix(c.base), c.n)
		got := p.String()
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s, %d: %s, want %s", c.base, c.n, got, c.want)
		}
	}
}
