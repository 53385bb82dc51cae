package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// The lab that is edited: three hosts that ping each other. LINKS and EXTRA are
// filled in by each edit.
const editable = `name: edit
topology:
  defaults: {kind: linux, image: "ghcr.io/srl-labs/network-multitool:IMAGE"}
  nodes:
    A:
      exec: [ip addr add 10.9.0.1/24 dev eth1]
    B:
      exec: [ip addr add 10.9.0.2/24 dev eth1]
      env: {COLOUR: GREEN}
      binds: ["note.txt:/note.txt"]
    C:
      exec: [ip addr add 10.9.0.3/24 dev eth1]
EXTRA
  links:
LINKS
`

type edition struct{ image, colour, note, extra, links string }

func (e edition) write(t *testing.T, dir string) string {
	t.Helper()
	text := strings.NewReplacer("IMAGE", e.image, "GREEN", e.colour, "EXTRA", e.extra, "LINKS", e.links).Replace(editable)
	topo := filepath.Join(dir, "edit.clab.yml")
	for name, content := range map[string]string{topo: text, filepath.Join(dir, "note.txt"): e.note} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return topo
}

// What diff says is what deploy does, edit by edit.
func TestEditsDoWhatDiffSaid(t *testing.T) {
	dir := t.TempDir()
	now := edition{image: "v1", colour: "green", note: "first", links: `    - endpoints: ["A:eth1", "B:eth1"]`}
	l := newLab(t, now.write(t, dir), "edit")
	l.deploy(t)
	l.reaches(t, "A", "10.9.0.2")
	for _, edit := range []struct {
		name   string
		change func(*edition)
		want   map[string]string // actions that are not "nothing"
		check  func(*testing.T)
	}{
		{"nothing", func(*edition) {}, nil, nil},
		{"a comment above", func(e *edition) { e.links = "    # the lab's only link\n" + e.links }, nil, nil},
		{"link added", func(e *edition) { e.links += "\n" + `    - endpoints: ["A:eth2", "C:eth1"]` },
			map[string]string{"A": "live", "C": "live"}, func(t *testing.T) {
				l.eventually(t, "A", "LOWER_UP", "ip", "link", "show", "eth2")
			}},
		{"link moved to another node", func(e *edition) { e.links = strings.Replace(e.links, `"B:eth1"`, `"C:eth2"`, 1) },
			map[string]string{"A": "live", "B": "live", "C": "live"}, func(t *testing.T) {
				l.eventually(t, "C", "LOWER_UP", "ip", "link", "show", "eth2")
				l.eventually(t, "B", "gone", "sh", "-c", "ip link show eth1 >/dev/null 2>&1 || echo gone")
			}},
		{"link moved back", func(e *edition) { e.links = strings.Replace(e.links, `"C:eth2"`, `"B:eth1"`, 1) },
			map[string]string{"A": "live", "B": "live", "C": "live"}, nil},
		{"link removed", func(e *edition) { e.links = strings.Split(e.links, "\n    - endpoints: [\"A:eth2\"")[0] },
			map[string]string{"A": "live", "C": "live"}, nil},
		{"env changed", func(e *edition) { e.colour = "red" }, map[string]string{"B": "recreate"}, func(t *testing.T) {
			l.eventually(t, "B", "red", "printenv", "COLOUR")
		}},
		{"bind changed", func(e *edition) { e.note = "second" }, map[string]string{"B": "recreate"}, func(t *testing.T) {
			l.eventually(t, "B", "second", "cat", "/note.txt")
		}},
		{"node added", func(e *edition) { e.extra = "    D: {}" }, map[string]string{"D": "create"}, func(t *testing.T) {
			l.reaches(t, "D", "A")
		}},
		{"node removed", func(e *edition) { e.extra = "" }, map[string]string{"D": "delete"}, nil},
		{"image changed", func(e *edition) { e.image = "v2" }, map[string]string{"A": "recreate", "B": "recreate", "C": "recreate"}, nil},
	} {
		if !t.Run(edit.name, func(t *testing.T) {
			edit.change(&now)
			now.write(t, dir)
			said := l.diff(t)
			for node, action := range said {
				if want := edit.want[node]; action != want && !(want == "" && action == "nothing") {
					t.Errorf("diff says %s for %s, want %q", action, node, want)
				}
			}
			before := restarts(t, l)
			l.deploy(t)
			var after map[string]string
			testcluster.Eventually(t, patience, "the Pods of removed nodes to go", func() (err error) {
				after, err = tryRestarts(t, l)
				for node, action := range said { // deploy does not wait for what it deletes
					if is := after[strings.ToLower(node)]; action == "delete" && is != "" {
						return fmt.Errorf("%s is there", is)
					}
				}
				return err
			})
			for node, action := range said {
				pod := strings.ToLower(node)
				was, is := before[pod], after[pod]
				did := "nothing"
				switch {
				case was == "":
					did = "create"
				case is == "":
					did = "delete"
				case was != is:
					did = "recreate"
				}
				if action == "live" {
					action = "nothing" // to the device
				}
				if did != action {
					t.Errorf("diff said %q for %s and deploy did %q: %q, then %q", said[node], node, did, was, is)
				}
			}
			l.ready(t)
			if edit.check != nil {
				edit.check(t)
			}
		}) {
			return
		}
	}
	l.reaches(t, "A", "10.9.0.2")
	l.destroyed(t)
}

// diff asks c9s what a deploy would do, by node.
func (l *lab) diff(t *testing.T) map[string]string {
	t.Helper()
	out, err := l.output(t, "diff", l.topo, "-n", l.ns, "--image", c9sImage, "--planner", planner, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Nodes []struct {
			Nodes  []string
			Action string
		}
	}
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	actions := map[string]string{}
	for _, n := range d.Nodes {
		for _, name := range n.Nodes {
			actions[name] = n.Action
		}
	}
	if len(actions) == 0 {
		t.Fatal(fmt.Errorf("diff names no node:\n%s", out))
	}
	return actions
}
