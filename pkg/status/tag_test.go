package status

import (
	"testing"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// What a reader of the status would see as news is news, and nothing else.
func TestTag(t *testing.T) {
	lab := func() Lab {
		return Lab{
			State: LabReady,
			Nodes: []Node{{Name: "R1", State: StateReady, Age: new(0.5), Commands: []Command{{Step: 1, Running: true}}}},
			Links: []Link{{ID: 1, A: End{Node: "R1", Interface: "eth1", Carrier: true}, B: End{Node: "R2", Interface: "eth1"}, State: LinkUp}},
		}
	}
	for name, c := range map[string]struct {
		change func(*Lab)
		news   bool
	}{
		"the same":            {func(*Lab) {}, false},
		"traffic":             {func(l *Lab) { l.Links[0].TxBytes, l.Links[0].RTT, l.Links[0].Drops = 9, 9, 9 }, false},
		"age":                 {func(l *Lab) { l.Nodes[0].Age = new(1.5); l.Links[0].Age = 1.5 }, false},
		"another source":      {func(l *Lab) { l.Source = "pods" }, false},
		"the lab's word":      {func(l *Lab) { l.State = LabDegraded }, true},
		"a node's word":       {func(l *Lab) { l.Nodes[0].State = StateDegraded }, true},
		"a reason":            {func(l *Lab) { l.Nodes[0].Reason = "x" }, true},
		"a restart":           {func(l *Lab) { l.Nodes[0].Restarts = 1 }, true},
		"the mesh":            {func(l *Lab) { l.Nodes[0].Mesh = "down" }, true},
		"a peer on the mesh":  {func(l *Lab) { l.Nodes[0].MeshLost = []string{"r2"} }, true},
		"a silent sidecar":    {func(l *Lab) { l.Nodes[0].Age = new(2.5) }, true},
		"a command that ends": {func(l *Lab) { l.Nodes[0].Commands = nil }, true},
		"one that fails":      {func(l *Lab) { l.Nodes[0].Commands[0] = Command{Step: 1, ExitCode: 3} }, true},
		"a link's word":       {func(l *Lab) { l.Links[0].State = LinkDown }, true},
		"a carrier":           {func(l *Lab) { l.Links[0].B.Carrier = true }, true},
		"an old link":         {func(l *Lab) { l.Links[0].Age = 3 }, true},
		"an impairment":       {func(l *Lab) { l.Links[0].A.Impairment = &contract.Impairment{Loss: 100} }, true},
		"what is left over":   {func(l *Lab) { l.Leftover = []Leftover{{Pod: "r9"}} }, true},
	} {
		l := lab()
		c.change(&l)
		if news := l.Tag() != lab().Tag(); news != c.news {
			t.Errorf("%s: news %v, want %v", name, news, c.news)
		}
	}
}
