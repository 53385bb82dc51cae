//go:build !nocluster

package cli

import (
	"encoding/json"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/snapshot"
)

// writeLab writes files of a lab; those whose name ends in .sh can be executed.
func writeLab(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		if err := os.WriteFile(full, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// copied is a lab with all that a copy has to have.
func copied(t *testing.T) (dir string) {
	t.Helper()
	dir = writeLab(t, map[string]string{
		"t.clab.yml": `# a lab
name: orig
mgmt:
  ipv4-subnet: 172.20.20.0/24
topology:
  nodes:
    R1: {kind: juniper_crpd, image: crpd, startup-config: seed.conf, mgmt-ipv4: 172.20.20.11}
    F1: {kind: linux, image: frr, binds: ["frr.conf:/etc/frr/frr.conf", "tools:/tools"]}
    V1: {kind: juniper_vsrx, image: "vrnetlab/vsrx", credentials: {username: me, password: hidden}}
    B1: {kind: bridge}
  links:
    - endpoints: ["R1:eth1", "F1:eth1"]
`,
		"c9s.yaml":     "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n  - name: small\n    match: {names: [F1]}\n    set: {nodeSelector: {disk: fast}}\n",
		"t.test.yaml":  "apiVersion: c9s.dev/v1\nkind: Test\n",
		"seed.conf":    "host-name seed;\n",
		"frr.conf":     "hostname F1\n",
		"tools/run.sh": "#!/bin/sh\n", "tools/deep/er/data": "data",
		"configs/R1.conf": "host-name saved;\n", "configs/R9.conf": "of nobody\n",
		"notes.txt": "not of the lab\n",
	})
	if err := os.Mkdir(filepath.Join(dir, "tools", "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestSnapshotAndRestore: a restored lab renders to what the lab itself does.
func TestSnapshotAndRestore(t *testing.T) {
	dir := copied(t)
	topo := filepath.Join(dir, "t.clab.yml")
	rendered := func(topo string) string {
		t.Helper()
		out, errs, code := run(t, "render", topo, "--planner", "builtin", "--saved")
		if code != 0 {
			t.Fatalf("render %s: %s", topo, errs)
		}
		return strings.ReplaceAll(out, filepath.ToSlash(topo), "TOPO")
	}
	for _, name := range []string{"shot", "shot.tar.gz"} {
		work := t.TempDir()
		file := filepath.Join(work, name)
		out, errs, code := run(t, "snapshot", file, "--topo", topo, "--saved")
		if code != 0 || !strings.Contains(out, "R1    juniper_crpd  saved") || !strings.Contains(out, "F1    linux         none") {
			t.Fatalf("snapshot: exit code %d\n%s%s", code, out, errs)
		}
		to := filepath.Join(work, "restored")
		out, errs, code = run(t, "restore", file, to)
		want := "c9s deploy " + filepath.Join(to, "t.clab.yml") + " -n orig --saved --allocations " + filepath.Join(to, "c9s-allocations.json") + "\n"
		if code != 0 || out != want {
			t.Fatalf("restore: exit code %d\n%s%s\nwant %s", code, out, errs, want)
		}
		if got, want := rendered(filepath.Join(to, "t.clab.yml")), rendered(topo); got != want {
			t.Errorf("%s: the restored lab renders to\n%s\nwant\n%s", name, got, want)
		}
		for name, there := range map[string]bool{"t.test.yaml": true, "tools/none": true, "configs/R1.conf": true, "configs/R9.conf": false, "notes.txt": false} {
			if _, err := os.Stat(filepath.Join(to, name)); (err == nil) != there {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, errs, code := run(t, "restore", file, to); code != ExitFailure || !strings.Contains(errs, "exists and is not an empty folder") {
			t.Errorf("restore twice: exit code %d\n%s", code, errs)
		}
		if _, errs, code := run(t, "snapshot", file, "--topo", topo, "--saved"); code != ExitFailure || !strings.Contains(errs, "exists: choose another name") {
			t.Errorf("snapshot twice: exit code %d\n%s", code, errs)
		}
	}
}

// TestSnapshotLeavesOut: what is outside the folder, and links in bound folders, are named.
func TestSnapshotLeavesOut(t *testing.T) {
	dir := writeLab(t, map[string]string{
		"lab/t.clab.yml": "name: t\ntopology:\n  nodes:\n    A: {kind: linux, image: a, binds: [\"../outside.txt:/o\", \"tools:/tools\", \"linked.txt:/l\", \"way/outside.txt:/w\"]}\n",
		"lab/tools/file": "x", "outside.txt": "x",
	})
	for name, to := range map[string]string{"linked.txt": "../outside.txt", "way": ".."} {
		if err := os.Symlink(to, filepath.Join(dir, "lab", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("file", filepath.Join(dir, "lab", "tools", "link")); err != nil {
		t.Fatal(err)
	}
	out, errs, code := run(t, "snapshot", filepath.Join(dir, "s"), "--topo", filepath.Join(dir, "lab"), "--saved", "-o", "json")
	var r snapshotResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	slices.Sort(r.Missing)
	if len(r.Missing) != 4 || !strings.HasSuffix(r.Missing[0], "outside.txt") || !slices.Equal(r.Missing[1:], []string{"linked.txt", "tools/link", "way/outside.txt"}) {
		t.Errorf("missing: %v", r.Missing)
	}
	for _, name := range []string{"linked.txt", "way", "way/outside.txt"} {
		if _, err := os.Lstat(filepath.Join(dir, "s", "lab", name)); err == nil {
			t.Errorf("%s is in the snapshot", name)
		}
	}
	if !strings.Contains(errs, "warning: the topology also reads links or files outside its folder, which are left out: ") {
		t.Errorf("no warning:\n%s", errs)
	}
}

// TestSnapshotMapsFiles: a file of --map-file is stored under the name that the topology has.
func TestSnapshotMapsFiles(t *testing.T) {
	dir := writeLab(t, map[string]string{
		"lab/t.clab.yml": "name: t\ntopology:\n  nodes:\n    A: {kind: linux, image: a, binds: [\"there/file:/o\"]}\n", "other": "mapped\n",
	})
	file := filepath.Join(dir, "s.tar.gz")
	if _, errs, code := run(t, "snapshot", file, "--topo", filepath.Join(dir, "lab"), "--saved", "--map-file", "there/file="+filepath.Join(dir, "other")); code != 0 {
		t.Fatal(errs)
	}
	s, err := snapshot.Read(file)
	if err != nil || s.File("there/file") == nil || string(s.File("there/file").Data) != "mapped\n" || len(s.Missing) > 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestClone: copies have names, networks and addresses of their own, and a page without passwords.
func TestClone(t *testing.T) {
	dir := copied(t)
	topo := filepath.Join(dir, "t.clab.yml")
	to := filepath.Join(t.TempDir(), "class")
	out, errs, code := run(t, "clone", "class", "--count", "3", "--first", "9", "--topo", topo, "--dir", to, "-o", "json")
	var copies []labCopy
	if err := json.Unmarshal([]byte(out), &copies); err != nil || code != 0 || len(copies) != 3 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	for i, want := range []struct{ name, subnet, address string }{
		{"class-09", "172.20.29.0/24", "172.20.29.11"}, {"class-10", "172.20.30.0/24", "172.20.30.11"}, {"class-11", "172.20.31.0/24", "172.20.31.11"},
	} {
		l := copies[i]
		if l.Name != want.name || l.Namespace != want.name || l.IPv4 != netip.MustParsePrefix(want.subnet) || l.IPv6.IsValid() || l.State != copyWritten {
			t.Errorf("copy %d: %+v", i, l)
		}
		out, errs, code := run(t, "render", l.Topology, "--planner", "builtin", "--saved")
		if code != 0 || !strings.Contains(out, want.address) || !strings.Contains(out, "host-name saved;") || strings.Contains(out, "172.20.20.") {
			t.Errorf("render %s: exit code %d\n%s", l.Topology, code, errs)
		}
		if _, err := os.Stat(filepath.Join(l.Folder, snapshot.AllocationsFile)); err == nil {
			t.Errorf("%s has the allocations of the lab", l.Name)
		}
	}
	page, err := os.ReadFile(filepath.Join(to, accessFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"    c9s ssh R1 --lab class-10 -n class-10 ", "    c9s shell F1 --lab class-10 -n class-10 ",
		"    c9s ssh V1 --lab class-10 -n class-10                        # juniper_vsrx, user me\n", "    c9s console V1 --lab class-10 -n class-10 ",
	} {
		if !strings.Contains(string(page), line) {
			t.Errorf("the page lacks %q:\n%s", line, page)
		}
	}
	if strings.Contains(string(page), "hidden") || strings.Contains(string(page), "password") || strings.Contains(string(page), "B1") {
		t.Errorf("the page has a password, or a node without a container:\n%s", page)
	}

	accounts, err := os.ReadFile(filepath.Join(to, studentsFile))
	if err != nil || strings.Count(string(accounts), "kind: RoleBinding\n") != 3 || strings.Count(string(accounts), "namespace: class-10\n") != 4 {
		t.Errorf("the accounts: %v\n%s", err, accounts)
	}

	one := filepath.Join(t.TempDir(), "one")
	if out, errs, code := run(t, "clone", "one", "--topo", topo, "--dir", one, "--passwords"); code != 0 || !strings.Contains(out, "172.20.21.0/24") {
		t.Errorf("one copy: exit code %d\n%s%s", code, out, errs)
	}
	if page, err := os.ReadFile(filepath.Join(one, accessFile)); err != nil || !strings.Contains(string(page), "user me, password hidden\n") {
		t.Errorf("with --passwords: %v\n%s", err, page)
	}
	text, err := os.ReadFile(filepath.Join(one, "t.clab.yml"))
	if err != nil || !strings.HasPrefix(string(text), "# a lab\nname: one\nmgmt:\n  ipv4-subnet: \"172.20.21.0/24\"\n") {
		t.Errorf("the topology of the copy: %v\n%s", err, text)
	}
}

func TestCloneRejects(t *testing.T) {
	dir := copied(t)
	topo := filepath.Join(dir, "t.clab.yml")
	full := writeLab(t, map[string]string{"ACCESS.md": "of another class\n"})
	template := filepath.Join(writeLab(t, map[string]string{"t.clab.gotmpl": "name: {{ print \"t\" }}\ntopology:\n  nodes:\n    A: {kind: linux, image: a}\n"}), "t.clab.gotmpl")
	for want, args := range map[string][]string{
		`name "Class": use up to 40 lower-case letters`:                      {"Class", "--topo", topo},
		"--count 0: use a number from 1 to 1000":                             {"c", "--topo", topo, "--count", "0"},
		"--first needs --count":                                              {"c", "--topo", topo, "--first", "2"},
		"--image, --map-image, --ttl, --owner and --timeout need --deploy":   {"c", "--topo", topo, "--ttl", "8h"},
		"the lab itself is called orig: choose another name":                 {"orig", "--topo", topo, "--dir", filepath.Join(dir, "x")},
		"exists: choose another folder with --dir":                           {"c", "--topo", topo, "--dir", full},
		"it is a template, and only plain YAML can be copied":                {"c", "--topo", template, "--dir", filepath.Join(dir, "y")},
		"is not a topology file on this machine: clone or download it first": {"c", "--topo", "-", "--dir", filepath.Join(dir, "z")},
		`--output "yaml": use json`:                                          {"c", "--topo", topo, "-o", "yaml"},
		"exists and is not an empty folder: choose another name":             {"c", "--topo", topo, "--dir", filepath.Join(dir, "tools")},
	} {
		_, errs, code := runWith(t, oneNode, append([]string{"clone"}, args...)...)
		if code == 0 || !strings.Contains(errs, want) {
			t.Errorf("clone %v: exit code %d\n%s\nwant %s", args, code, errs, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(full, "ACCESS.md")); err != nil || string(text) != "of another class\n" {
		t.Errorf("the page of another class: %q, %v", text, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".c9s") || len(e.Name()) == 1 }) {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestDestroyAllRejects: flags of destroy that do not fit together.
func TestDestroyAllRejects(t *testing.T) {
	for want, args := range map[string][]string{
		"--mine needs --all":                                 {"--mine"},
		"--all deletes all labs: remove it to delete one":    {"mylab", "--all"},
		"--save needs the topology of one lab":               {"--all", "--save"},
		"Standard input is not a terminal, so nobody can an": {"--all", "--mine"},
	} {
		_, errs, code := run(t, append([]string{"destroy"}, args...)...)
		if code != ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("destroy %v: exit code %d\n%s\nwant %s", args, code, errs, want)
		}
	}
}
