package pipeline

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// edited renders a lab under one policy and under another, or with another topology, and
// returns the objects that differ, as KIND/NAME, "+" before the new ones.
func edited(t *testing.T, before, after [2]string) []string {
	t.Helper()
	objects := func(files [2]string) map[string]string {
		dir := t.TempDir()
		for i, name := range []string{"lab.clab.yml", "c9s.yaml"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(files[i]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out := map[string]string{}
		for _, text := range renderedObjects(t, Input{Ref: filepath.Join(dir, "lab.clab.yml")}) {
			var head struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := json.Unmarshal([]byte(text), &head); err != nil {
				t.Fatal(err)
			}
			out[head.Kind+"/"+head.Metadata.Name] = text
		}
		return out
	}
	old := objects(before)
	var out []string
	for name, text := range objects(after) {
		switch had, known := old[name]; {
		case !known:
			out = append(out, "+"+name)
		case had != text:
			out = append(out, name)
		}
		delete(old, name)
	}
	for name := range old {
		out = append(out, "-"+name)
	}
	slices.Sort(out)
	return out
}

const (
	networkHead = "apiVersion: c9s.dev/v1\nkind: Policy\n"
	networkLab  = "name: t\ntopology:\n  defaults: {kind: linux, image: a}\n  nodes:\n    r1: {}\n    h1: {labels: {lan: a}}\n    h2: {labels: {lan: a}}\n"
)

// TestReachChangesLive: rules about who reaches what change links.json of the nodes that they
// are for.
func TestReachChangesLive(t *testing.T) {
	for name, tt := range map[string]struct {
		policy string
		want   []string
	}{
		"management": {"management: [{from: {names: [h1]}, to: {names: [r1]}, allow: false}]\n", []string{"ConfigMap/c9s-topology", "ConfigMap/h1-links", "ConfigMap/r1-links"}},
		"external":   {"external: [{prefixes: [10.0.0.0/8], allow: false}]\n", []string{"ConfigMap/c9s-topology", "ConfigMap/h1-links", "ConfigMap/h2-links", "ConfigMap/r1-links"}},
		"allowed":    {"management: [{allow: true}]\n", nil},
	} {
		got := edited(t, [2]string{networkLab, networkHead}, [2]string{networkLab, networkHead + tt.policy})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestSegmentsChangeLive: an edit of a segment changes links.json of the bridge, and a new
// member only adds to it; no Deployment of another node changes.
func TestSegmentsChangeLive(t *testing.T) {
	// The allocations, the directory and the lab's drawing are for no device.
	const allocations, directory, topology = "ConfigMap/c9s-allocations", "ConfigMap/c9s-directory", "ConfigMap/c9s-topology"
	segment := func(more string) string {
		return networkHead + "segments:\n- {name: lan, subnet: 10.20.0.0/24, gateway: r1, members: {match: {labels: {lan: a}}, interface: eth1}" + more + "}\n"
	}
	for name, tt := range map[string]struct {
		topo, policy string
		want         []string
	}{
		"forward": {networkLab, segment(", forward: [lacp]"), []string{"ConfigMap/lan-links", topology}},
		"isolate": {networkLab, segment(", isolate: true"), []string{"ConfigMap/lan-links", topology}},
		"a member": {networkLab + "    h3: {labels: {lan: a}}\n", segment(""), []string{
			"+ConfigMap/h3-files-64c697bce8", "+ConfigMap/h3-links", "+Deployment/h3", allocations, directory, topology, "ConfigMap/lan-links",
		}},
	} {
		got := edited(t, [2]string{networkLab, segment("")}, [2]string{tt.topo, tt.policy})
		slices.Sort(tt.want)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
