package hooks_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/google/shlex"
)

// recordedDir has what containerlab's hooks did, recorded elsewhere: one file a kind.
const recordedDir = "../../../../shared/reference/plans"

// recorded is the part of a record that is compared.
type recorded struct {
	Files []struct{ Path, Mode, Phase string }
	Links []struct {
		Endpoints []struct{ Iface, Node string }
	}
	Nodes map[string]struct {
		Containers map[string]struct {
			Image, Entrypoint, Cmd, User string
			Env, Sysctls, Tmpfs          map[string]string
			Binds, Devices               []string
			CapAdd                       []string `json:"cap-add"`
			ShmSize                      string   `json:"shm-size"`
			Memory                       string
			Privileged                   bool
			RestartPolicy                string `json:"restart-policy"`
			Type                         string
		}
		LinkApplyMode string `json:"linkApplyMode"`
		StopSignal    string `json:"stopSignal"`
	}
}

// TestRecordedPlans compares the plan of each kind with the record, field by field,
// and prints the table.
func TestRecordedPlans(t *testing.T) {
	files, err := filepath.Glob(recordedDir + "/*.json")
	if err != nil || len(files) == 0 {
		t.Skip("the recorded plans are not beside this checkout")
	}
	var table strings.Builder
	agree := 0
	for _, name := range files {
		kind := strings.TrimSuffix(filepath.Base(name), ".json")
		k, ok := kinds.Builtin().Lookup(kind)
		if !ok || k.Refused != "" || k.RootNamespace {
			fmt.Fprintf(&table, "%-26s makes no container in the lab\n", kind)
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var r recorded
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		diffs := compareRecorded(planRecorded(t, kind, &r), &r)
		if len(diffs) == 0 {
			agree++
			fmt.Fprintf(&table, "%-26s agrees\n", kind)
			continue
		}
		fmt.Fprintf(&table, "%-26s differs: %s\n", kind, strings.Join(diffs, "; "))
		t.Errorf("%s: %s", kind, strings.Join(diffs, "; "))
	}
	t.Logf("\n%s%d kinds agree with their records", table.String(), agree)
}

// planRecorded plans the record's lab: n1 of the kind, linked to peer.
func planRecorded(t *testing.T, kind string, r *recorded) *plan.Plan {
	t.Helper()
	own := r.Nodes["n1"]
	extra, image := "", ""
	for _, c := range own.Containers {
		image = c.Image
		if c.Type != "" {
			extra = ", type: " + c.Type
		}
	}
	for _, f := range r.Files {
		if strings.HasSuffix(f.Path, "license.key") {
			extra += ", license: lic"
		}
	}
	links := ""
	for _, l := range r.Links {
		links += "    - {type: veth, endpoints: ["
		for i, e := range l.Endpoints {
			if i > 0 {
				links += ", "
			}
			if kind == "spirent_stc" && e.Node == "n1" {
				e.Iface = "port1" // the record has the Linux name, which this kind does not take
			}
			links += fmt.Sprintf("{node: %s, interface: %q}", e.Node, e.Iface)
		}
		links += "]}\n"
	}
	text := fmt.Sprintf("name: t\ntopology:\n  nodes:\n    n1: {kind: %s, image: '%s'%s}\n    peer: {kind: linux, image: a}\n  links:\n%s", kind, image, extra, links)
	l := compileLab(t, text, map[string]string{"lic": "a licence"})
	l.Node("n1").Index = 0 // the record's: its place among the names
	return planWith(t, raw(t), l, "n1")
}

// notFacts are variables that c9s sets otherwise on purpose, or that hold a MAC
// address that the record drew.
func notFacts(name string) bool {
	return strings.HasPrefix(name, "CLAB_LABEL_") || strings.EqualFold(name, "no_proxy") || name == "NOKIA_SROS_SYSTEM_BASE_MAC"
}

func compareRecorded(p *plan.Plan, r *recorded) []string {
	var diffs []string
	add := func(field string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			diffs = append(diffs, fmt.Sprintf("%s is %.120q, recorded %.120q", field, fmt.Sprint(got), fmt.Sprint(want)))
		}
	}
	own := r.Nodes["n1"]
	if len(p.Containers) != len(own.Containers) || len(p.Containers) != 1 {
		return []string{fmt.Sprintf("%d containers, recorded %d: %v", len(p.Containers), len(own.Containers), p.Diagnostics)}
	}
	c := p.Containers[0]
	for _, want := range own.Containers {
		entrypoint, _ := shlex.Split(want.Entrypoint)
		add("entrypoint", c.Entrypoint, entrypoint)
		if !strings.Contains(want.Cmd, "systemd.setenv") { // the variables are sorted, some left out
			cmd, _ := shlex.Split(want.Cmd)
			add("cmd", c.Cmd, cmd)
		}
		add("user", c.User, want.User)
		add("privileged", c.Privileged, want.Privileged)
		add("restart-policy", c.RestartPolicy, want.RestartPolicy)
		add("capabilities", sorted(c.CapAdd), sorted(want.CapAdd))
		add("devices", sorted(c.Devices), sorted(want.Devices))
		add("sysctls", pairs(c.Sysctls), pairs(want.Sysctls))
		add("tmpfs", pairs(c.Tmpfs), pairs(want.Tmpfs))
		add("env", pairs(c.Env), pairs(want.Env))
		add("mounts", mounts(c.Mounts), binds(want.Binds))
		add("shm-size", c.ShmSize > 0, want.ShmSize != "")
		add("memory", c.Memory > 0, want.Memory != "")
	}
	add("link-apply-mode", p.LinkApplyMode, own.LinkApplyMode)
	add("stop-signal", p.StopSignal, own.StopSignal)
	var missing []string
	for _, f := range r.Files {
		rel, inNode := strings.CutPrefix(f.Path, "clab-t/n1/")
		if !inNode || strings.HasPrefix(rel, ".") {
			continue
		}
		have := file(p, strings.TrimSuffix(rel, "/"))
		if have == nil {
			missing = append(missing, rel)
			continue
		}
		// The record was made under umask 022; a plan has what hooks ask for.
		if got := fs.FileMode(have.Mode &^ 0o022); strings.HasPrefix(f.Mode, "-") && got.String() != masked(f.Mode) {
			diffs = append(diffs, fmt.Sprintf("%s has mode %s, recorded %s", rel, got, f.Mode))
		}
	}
	add("missing files", missing, []string(nil))
	return diffs
}

// masked is a recorded mode without the bits that umask 022 takes.
func masked(mode string) string {
	b := []byte(mode)
	for _, i := range []int{5, 8} {
		b[i] = '-'
	}
	return string(b)
}

func sorted(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return out
}

func pairs(m map[string]string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !notFacts(k) {
			out = append(out, k+"="+m[k])
		}
	}
	return out
}

func mounts(list []plan.Mount) []string {
	var out []string
	for _, m := range list {
		source := m.HostPath
		if m.Path != "" {
			source = m.Path
		}
		out = append(out, fmt.Sprintf("%s:%s ro=%v", source, path.Clean(m.Target), m.ReadOnly))
	}
	slices.Sort(out)
	return out
}

func binds(list []string) []string {
	var out []string
	for _, b := range list {
		parts := strings.Split(b, ":")
		source := strings.TrimPrefix(parts[0], "{{WS}}/clab-t/n1/")
		ro := len(parts) > 2 && strings.Contains(parts[2], "ro")
		out = append(out, fmt.Sprintf("%s:%s ro=%v", source, path.Clean(parts[1]), ro))
	}
	slices.Sort(out)
	return out
}
