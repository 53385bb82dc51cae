package diag

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListSortsAndDropsRepetitions(t *testing.T) {
	var l List
	at := func(line, column int) Pos { return Pos{File: "t", Line: line, Column: column} }
	l.Warnf("b", at(2, 1), "", "second")
	l.Errorf("a", at(1, 5), "hint", "first %d", 1)
	l.Warnf("b", at(2, 1), "", "second")
	l.Warnf("c", Pos{}, "", "nowhere")
	var got []string
	for _, d := range l.All() {
		got = append(got, d.String())
	}
	want := []string{"warning: nowhere [c]", "t:1:5: error: first 1 [a]", "t:2:1: warning: second [b]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if errors, warnings := l.Count(); errors != 1 || warnings != 2 || !l.HasErrors() {
		t.Errorf("%d errors, %d warnings", errors, warnings)
	}
}

func TestCollapse(t *testing.T) {
	var l List
	for line := 1; line <= 3; line++ {
		l.Warnf("w", Pos{File: "t", Line: line}, "", "same")
		l.Errorf("e", Pos{File: "t", Line: line}, "", "same")
	}
	l.Warnf("w", Pos{File: "t", Line: 9}, "", "other")
	for _, node := range []string{"r1", "r2", "r3"} {
		end := l.ForNode(node)
		l.Errorf("of defaults", Pos{File: "t", Line: 20}, "", "the image of node %q is bad", node)
		end()
		l.Errorf("of a link", Pos{File: "t", Line: 21}, "", "no interface %q", node)
	}
	var got []string
	for _, d := range Collapse(l.All()) {
		got = append(got, fmt.Sprintf("%d %s", d.Line, d.Message))
	}
	want := []string{"1 same", "1 same (and at 2 more places)", "2 same", "3 same", "9 other", `20 the image of node "r1" is bad (and for 2 more nodes: r2, r3)`, `21 no interface "r1"`, `21 no interface "r2"`, `21 no interface "r3"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestForNode: a diagnostic has the node that it was added for, and none if several
// nodes share it.
func TestForNode(t *testing.T) {
	var l List
	for _, node := range []string{"r1", "r2"} {
		end := l.ForNode(node)
		l.Errorf("own", Pos{}, "", "of node %q", node)
		l.Errorf("shared", Pos{}, "", "of defaults")
		end()
	}
	l.Errorf("z-lab", Pos{}, "", "of the lab")
	var got []string
	for _, d := range l.All() {
		got = append(got, string(d.Code)+" "+d.Node)
	}
	if diff := cmp.Diff([]string{"own r1", "own r2", "shared ", "z-lab "}, got); diff != "" {
		t.Error(diff)
	}
}
