package contract

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestManifestsThatLeadOut: a manifest names nothing outside the folders that prepare
// works in, and no step that cannot run.
func TestManifestsThatLeadOut(t *testing.T) {
	whole := func() Manifest {
		return Manifest{Version: ManifestVersion, Volumes: []string{"v"}, Nodes: []ManifestNode{{
			ID: "r1", Entries: []Entry{{Path: "etc/a", Chunks: []string{"0/a"}}},
			Containers: []Container{{
				Name: "r1", Payloads: []Entry{{Path: "payload/0", Chunks: []string{"0/b"}}},
				Program: Program{Version: ProgramVersion, Steps: []Step{
					{Run: &Run{Argv: []string{"true"}}}, {Wait: &Wait{Argv: []string{"true"}, IntervalSeconds: 1}},
					{Write: &Write{Path: "/etc/b", Payload: "payload/0"}}, {Write: &Write{Path: "/empty"}},
					{CLI: &CLI{Argv: []string{"sh"}}}, {Over: "create"}, {WaitFor: []WaitFor{{Node: "r2"}}},
				}},
			}},
		}}}
	}
	parse := func(m Manifest) error {
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ParseManifest(data)
		return err
	}
	if err := parse(whole()); err != nil {
		t.Error(err)
	}
	steps := func(m *Manifest) []Step { return m.Nodes[0].Containers[0].Program.Steps }
	for want, change := range map[string]func(*Manifest){
		`".." cannot be the folder of a volume`:                 func(m *Manifest) { m.Volumes[0] = ".." },
		`"../../var/lib" cannot be the folder of a node`:        func(m *Manifest) { m.Nodes[0].ID = "../../var/lib" },
		`"" cannot be the folder of a node`:                     func(m *Manifest) { m.Nodes[0].ID = "" },
		`"a/b" cannot be the folder of a container`:             func(m *Manifest) { m.Nodes[0].Containers[0].Name = "a/b" },
		`the path "/etc/passwd" leaves its folder`:              func(m *Manifest) { m.Nodes[0].Entries[0].Path = "/etc/passwd" },
		`the path "../../proc/1/environ" leaves its folder`:     func(m *Manifest) { m.Nodes[0].Entries[0].Chunks[0] = "../../proc/1/environ" },
		`the path "a/../../b" leaves its folder`:                func(m *Manifest) { m.Nodes[0].Containers[0].Payloads[0].Path = "a/../../b" },
		`etc/a has a size of -1 bytes`:                          func(m *Manifest) { m.Nodes[0].Entries[0].Size = -1 },
		`step 1: it has no command`:                             func(m *Manifest) { steps(m)[0].Run.Argv = nil },
		`step 2: a time to wait is negative`:                    func(m *Manifest) { steps(m)[1].Wait.IntervalSeconds = -1 },
		`step 3: the path "../other/payload" leaves its folder`: func(m *Manifest) { steps(m)[2].Write.Payload = "../other/payload" },
		`step 5: it has no command`:                             func(m *Manifest) { steps(m)[4].CLI.Argv = []string{""} },
		`step 6: it has 0 actions, want one`:                    func(m *Manifest) { steps(m)[5].Over = "" },
		`step 7: it has 2 actions, want one`:                    func(m *Manifest) { steps(m)[6].Over = "create" },
		`the manifest has version "v0"`:                         func(m *Manifest) { m.Version = "v0" },
	} {
		m := whole()
		change(&m)
		if err := parse(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// FuzzManifest: a manifest that is accepted stays in its folders.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"version":"` + ManifestVersion + `","volumes":["v"],"nodes":[{"id":"r1","entries":[{"path":"a/b","mode":"0644","chunks":["0/a"]}],
		"gate":{"create":[{"node":"a"}]},"containers":[{"name":"r1","program":{"version":"` + ProgramVersion + `","steps":[{"run":{"argv":["a"]}}]}}]}]}`))
	f.Add([]byte(`{"version":"` + ManifestVersion + `","nodes":[{"id":".."}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			return
		}
		below := func(parts ...string) {
			if rel, err := filepath.Rel("/base", filepath.Join(append([]string{"/base"}, parts...)...)); err != nil || rel == "." || strings.HasPrefix(rel, "..") {
				t.Errorf("%q is at %s", parts, rel)
			}
		}
		for _, v := range m.Volumes {
			below(v)
		}
		for _, n := range m.Nodes {
			below(n.ID)
			for _, e := range n.Entries {
				below(e.Path)
				for _, c := range e.Chunks {
					below(c)
				}
			}
			for _, c := range n.Containers {
				below(c.Name)
			}
		}
	})
}

// FuzzProgram: a program that is accepted has one action in each step, and its commands
// have a name.
func FuzzProgram(f *testing.F) {
	for _, step := range []string{`{"run":{"argv":["a"],"detach":true}}`, `{"wait":{"argv":["a"],"intervalSeconds":1}}`, `{"write":{"path":"/a","mode":"0644"}}`,
		`{"cli":{"argv":["a"],"lines":["b"]}}`, `{"over":"create"}`, `{"waitFor":[{"node":"a","pod":"a","stage":"create"}]}`, `{"run":{}}`, `{}`} {
		f.Add([]byte(`{"version":"` + ProgramVersion + `","node":"a","steps":[` + step + `]}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseProgram(data)
		if err != nil {
			return
		}
		for _, s := range p.Steps {
			actions := 0
			for _, action := range []struct {
				there bool
				argv  func() []string
			}{
				{s.Run != nil, func() []string { return s.Run.Argv }},
				{s.Wait != nil, func() []string { return s.Wait.Argv }},
				{s.CLI != nil, func() []string { return s.CLI.Argv }},
				{s.Write != nil, nil}, {s.Over != "", nil}, {len(s.WaitFor) > 0, nil},
			} {
				if !action.there {
					continue
				}
				actions++
				if action.argv == nil {
					continue
				}
				if argv := action.argv(); len(argv) == 0 || argv[0] == "" {
					t.Errorf("%+v has no command", s)
				}
			}
			if actions != 1 {
				t.Errorf("%+v has %d actions", s, actions)
			}
		}
	})
}
