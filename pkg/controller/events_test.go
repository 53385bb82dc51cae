package controller

import (
	"slices"
	"testing"

	"github.com/c9s-lab/c9s/pkg/status"
)

func link(l *status.Lab, up bool) *status.Lab {
	l.Links[0].Up, l.Links[0].State, l.Links[0].Reason = up, status.LinkUp, ""
	if !up {
		l.Links[0].State, l.Links[0].Reason = status.LinkDown, "r2 is not heard"
	}
	return l
}

func node(state status.State, reason string) *status.Lab {
	l := labOf(pods())
	l.Nodes[0].State, l.Nodes[0].Reason = state, reason
	return &l
}

// Each row is what the lab goes through, and the events of that.
func TestEvents(t *testing.T) {
	ready := func() *status.Lab { l := labOf(pods()); return &l }
	down := func() *status.Lab { return link(ready(), false) }
	booting := func() *status.Lab {
		l := down()
		for i := range l.Nodes {
			l.Nodes[i].State = status.StateWiring
		}
		return l
	}
	for name, c := range map[string]struct {
		labs []*status.Lab
		want []string
	}{
		"first start":           {[]*status.Lab{booting(), down(), ready()}, nil},
		"down and up":           {[]*status.Lab{ready(), down(), down(), ready(), ready()}, []string{"event LinkDown", "event LinkUp"}},
		"down twice":            {[]*status.Lab{ready(), down(), ready(), down()}, []string{"event LinkDown", "event LinkUp", "event LinkDown"}},
		"its node starts anew":  {[]*status.Lab{ready(), booting(), ready()}, nil},
		"a node fails":          {[]*status.Lab{ready(), node(status.StateFailed, "x"), node(status.StateFailed, "x")}, []string{"event NodeFailed"}},
		"fails for another why": {[]*status.Lab{node(status.StateFailed, "x"), node(status.StateFailed, "y")}, []string{"event NodeFailed", "event NodeFailed"}},
		"fails and comes back":  {[]*status.Lab{node(status.StateFailed, "x"), node(status.StateBooting, ""), ready(), ready()}, []string{"event NodeFailed", "event NodeReady"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := cluster(t, nil)
			e := newEventWriter(client, namespace)
			for _, l := range c.labs {
				if err := e.tell(t.Context(), *l); err != nil {
					t.Fatal(err)
				}
			}
			if got := writes(client); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// A new leader does not repeat what the old one told.
func TestEventsOfANewLeader(t *testing.T) {
	client := cluster(t, nil)
	e := newEventWriter(client, namespace)
	l := node(status.StateFailed, "x")
	e.know(*l)
	if err := e.tell(t.Context(), *l); err != nil {
		t.Fatal(err)
	}
	if got := writes(client); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if err := e.tell(t.Context(), *link(l, false)); err != nil {
		t.Fatal(err)
	}
	if got := writes(client); len(got) != 0 {
		t.Errorf("%v: the link of a node that has failed says nothing of the line", got)
	}
}

// A lab that flaps writes so many events and no more.
func TestEventsAreBounded(t *testing.T) {
	client := cluster(t, nil)
	e := newEventWriter(client, namespace)
	l := labOf(pods())
	for i := range 10 * eventBurst {
		if err := e.tell(t.Context(), *link(&l, i%2 == 0)); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(writes(client)); got < eventBurst || got > eventBurst+eventsPerMinute {
		t.Errorf("%d events", got)
	}
}
