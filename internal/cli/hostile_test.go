//go:build !nocluster

package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/doctor"
	"github.com/c9s-lab/c9s/pkg/status"
)

// hostile is text that a terminal would obey, and that would break a table.
const hostile = "x\x1b[2J\x1b]0;owned\a\u009b31m\u202e\ty\r\nz\n"

// obeys fails the test where a terminal would obey something of text.
func obeys(t *testing.T, what, text string) {
	t.Helper()
	if safe := show.Text(text); safe != text {
		t.Errorf("%s: a terminal obeys %q", what, text)
	}
}

// TestTerminalsObeyNothing has what other tenants and devices say, in everything that is
// printed for people: each line stays a line, each cell a cell.
func TestTerminalsObeyNothing(t *testing.T) {
	lab := func(text string) status.Lab {
		return status.Lab{Name: text, Namespace: text, State: text, Nodes: []status.Node{
			{Name: text, Kind: text, Image: text, State: status.State(text), Reason: text, Worker: text, PodName: text, Exposed: text, Source: text + ":1",
				Commands: []status.Command{{Command: text, ExitCode: 1, Output: text}}},
		}, Links: []status.Link{{Kind: text, Reason: text, Datapath: text, A: status.End{Node: text, Interface: text}, B: status.End{Node: text, Interface: text}}}, Leftover: []status.Leftover{{Nodes: text}, {Pod: text}}}
	}
	changes := func(text string) cluster.Diff {
		return cluster.Diff{
			Nodes: []cluster.NodeDiff{{Nodes: []string{text}, Action: cluster.ActionRecreate, Why: []string{text}}},
			Prune: []cluster.Prune{{Object: text}}, Foreign: []cluster.Foreign{{Object: text, Managers: []string{text}}},
		}
	}
	progressOf := func(text string) func(io.Writer) error {
		return func(w io.Writer) error {
			p := newProgress(IO{Out: w, Err: w}, false)
			p.lab(text, "ns", "ctx")
			p.progress([]cluster.PodProgress{{Pod: text, Nodes: []string{text}, Progress: status.Progress{State: status.StateBooting, Reason: text, Message: text}}})
			p.commands(lab(text).Nodes)
			return nil
		}
	}
	for name, print := range map[string]func(text string) func(io.Writer) error{
		"status": func(s string) func(io.Writer) error {
			return func(w io.Writer) error { return printStatus(w, lab(s), false) }
		},
		"status -o wide": func(s string) func(io.Writer) error {
			return func(w io.Writer) error { return printStatus(w, lab(s), true) }
		},
		"status -o json": func(s string) func(io.Writer) error { return func(w io.Writer) error { return printJSON(w, lab(s)) } },
		"labs": func(s string) func(io.Writer) error {
			return func(w io.Writer) error { return labTable(w, []labLine{{Name: s, Namespace: s, State: s}}) }
		},
		"inspect": func(s string) func(io.Writer) error {
			return func(w io.Writer) error { return inspectTable(w, inspectRows(lab(s)), true, true) }
		},
		"doctor": func(s string) func(io.Writer) error {
			return func(w io.Writer) error {
				return printDoctor(IO{Out: w}, doctor.Report{Lab: s, Checks: []doctor.Check{{Name: s, Found: s, Remedy: s}}}, false)
			}
		},
		"diff": func(s string) func(io.Writer) error {
			return func(w io.Writer) error {
				return (&diffFlags{}).print(IO{Out: w}, changes(s))
			}
		},
		"deploy, another client": func(s string) func(io.Writer) error {
			return func(w io.Writer) error { claimedBy(IO{Err: w}, s); return nil }
		},
		"deploy, what it does": func(s string) func(io.Writer) error {
			return func(w io.Writer) error { (&deployFlags{}).consequences(IO{Err: w}, changes(s)); return nil }
		},
		"destroy": func(s string) func(io.Writer) error {
			return func(w io.Writer) error {
				fmt.Fprintln(w, deleteQuestion(cluster.Found{Name: s, Namespace: "ns"}, "ctx"))
				return nil
			}
		},
		"a lab that cannot be read": func(s string) func(io.Writer) error {
			return func(w io.Writer) error {
				unreadable(IO{Err: w}, cluster.Found{Name: s, Namespace: "ns"}, io.EOF)
				return nil
			}
		},
		"inspect --all": func(s string) func(io.Writer) error {
			return func(w io.Writer) error {
				return inspectTable(w, []inspectRow{{Topology: s, Lab: s, Name: s, Kind: s, Image: s, State: s, Namespace: s, Worker: s, PodName: s, Exposed: s, Ports: []string{s}}}, true, true)
			}
		},
		"exec --all": func(s string) func(io.Writer) error {
			return func(w io.Writer) error { printResult(IO{Out: w, Err: w}, execResult{Node: s, Error: "e"}); return nil }
		},
		"progress": func(s string) func(io.Writer) error { return progressOf(s) },
	} {
		var bad, good bytes.Buffer
		for text, out := range map[string]*bytes.Buffer{hostile: &bad, "plain": &good} {
			if err := print(text)(show.New(out)); err != nil {
				t.Fatal(name, err)
			}
		}
		obeys(t, name, bad.String())
		if got, want := strings.Count(bad.String(), "\n"), strings.Count(good.String(), "\n"); got != want {
			t.Errorf("%s: %d lines, want %d:\n%s", name, got, want, bad.String())
		}
		if got, want := strings.Count(bad.String(), "\t"), strings.Count(good.String(), "\t"); got != want {
			t.Errorf("%s: %d tabs, want %d:\n%s", name, got, want, bad.String())
		}
	}
}

// TestCommandsPrintNothingThatATerminalObeys has a topology, its folder and arguments
// with controls in them.
func TestCommandsPrintNothingThatATerminalObeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab\x1b[2J\u202e\nsecond line")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"names.clab.yml": "name: t\ntopology:\n  nodes:\n    \"a\\e[2J\\u202e\\x9b\": {kind: \"\\e]0;x\\a\", image: \"i\\e[1m\", aliases: [\"b\\nc\"]}\n  links: [{endpoints: [\"a\\e:x\", \"b:\\u202e\"]}]\n",
		"yaml.clab.yml":  "name: t\x1b[2J: [\n",
		"text.clab.yml":  "{{ \x1b[2J }}\n",
		"good.clab.yml":  "name: t\ntopology:\n  nodes:\n    a: {kind: linux, image: i, group: \"g\\e[2J\\u202e\", type: \"\\e[2J\", labels: {x: \"\\e[2J\"}}\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"validate", file}, {"validate", file, "-o", "json"}, {"graph", file}, {"graph", file, "-o", "dot"}, {"graph", file, "-o", "html"},
			{"plan", file, "-o", "json"}, {"render", file, "--only", "\x1b[2J"}, {"render", "-t", file, "--\x1b[2J"}, {"explain", "\x1b[2J"}, {"\x1b[2J"},
			{"render", file, "--map-file", "\x1b[2J=\u202e"}, {"render", file, "--policy", "\x1b[2J"}, {"kinds", "--kinds", dir}, {"__complete", "render", file, ""},
		} {
			var out, errs bytes.Buffer
			Main(args, IO{In: strings.NewReader(""), Out: &out, Err: &errs})
			if args[0] != "render" { // a document for programs, which a pipe gets as it is
				obeys(t, fmt.Sprintf("%q: standard output", args), out.String())
			}
			obeys(t, fmt.Sprintf("%q: standard error", args), errs.String())
			if out.Len()+errs.Len() == 0 {
				t.Errorf("%q prints nothing", args)
			}
			for line := range strings.Lines(out.String() + errs.String()) {
				if strings.HasPrefix(line, "second line") {
					t.Errorf("%q: a name begins a line of its own:\n%s%s", args, out.String(), errs.String())
				}
			}
		}
	}
}
