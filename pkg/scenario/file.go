// Package scenario breaks a running lab as a file says: links, nodes, workers and commands, each
// at its time. It measures meanwhile how long addresses are not reached, and takes back in the
// end what it has done.
package scenario

import (
	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/labtest"
	"github.com/c9s-lab/c9s/pkg/policy"
)

// APIVersion and Kind head every scenario.
const (
	APIVersion = "c9s.dev/v1"
	Kind       = "Scenario"
)

// File is a scenario.
type File struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Name is for the report.
	Name string `json:"name,omitempty"`
	// Seed makes the random choices repeatable: picks, jitter, and which frames are lost. 0
	// chooses one, which the report names.
	Seed int64 `json:"seed,omitempty"`
	// Duration is how long the scenario lasts (default: 5s after the last event).
	Duration labtest.Duration `json:"duration,omitempty"`
	// Probes measure how long addresses are not reached.
	Probes []Probe `json:"probes,omitempty"`
	// Events are what happens, in any order.
	Events []Event `json:"events"`
}

// Probe pings an address throughout the scenario.
type Probe struct {
	// Name is for the report.
	Name string `json:"name,omitempty"`
	// From is a node.
	From string          `json:"from"`
	To   labtest.Address `json:"to"`
	// Within is the longest time that the address may be unreachable at a time. Without it,
	// the times are reported and nothing is judged.
	Within labtest.Duration `json:"within,omitempty"`
	// Device is the VRF or interface to send by.
	Device string   `json:"device,omitempty"`
	Pos    diag.Pos `json:"-"`
}

// Event is something that happens. It has one of link, node, worker and exec.
type Event struct {
	// Name is for the report.
	Name string `json:"name,omitempty"`
	// At is the time since the beginning.
	At Time `json:"at"`
	// Jitter delays the event by a random time up to this.
	Jitter labtest.Duration `json:"jitter,omitempty"`
	// Times repeats the event, every Every.
	Times int              `json:"times,omitempty"`
	Every labtest.Duration `json:"every,omitempty"`
	// Pick chooses this many of the links, nodes or workers at random, each time.
	Pick int `json:"pick,omitempty"`

	// Link are ends of links, as NODE:INTERFACE or as patterns.
	Link Names `json:"link,omitempty"`
	// Node are nodes, by name or pattern.
	Node Names `json:"node,omitempty"`
	// Worker are workers, by name or pattern.
	Worker Names `json:"worker,omitempty"`
	// Exec are nodes, by name or pattern, in which Command runs.
	Exec Names `json:"exec,omitempty"`

	// Do is down, up, flap, set or reset for a link (default: set with impair, otherwise
	// down); stop, start or restart for a node; cordon, uncordon or drain for a worker.
	Do string `json:"do,omitempty"`
	// For takes the event back after this time. Otherwise it is taken back at the end.
	For labtest.Duration `json:"for,omitempty"`
	// Keep leaves the event as it is at the end.
	Keep bool `json:"keep,omitempty"`
	// Impair is for set: what the ends do to the frames that they send.
	Impair *policy.Impair `json:"impair,omitempty"`
	// Both also impairs what the peers send.
	Both bool `json:"both,omitempty"`
	// Flaps is for flap: how often, and how.
	Flaps *Flaps `json:"flaps,omitempty"`
	// Command runs in the nodes of exec; Undo takes it back.
	Command labtest.Argv `json:"command,omitempty"`
	Undo    labtest.Argv `json:"undo,omitempty"`
	Pos     diag.Pos     `json:"-"`
}

// Flaps is how a link goes down and up several times.
type Flaps struct {
	// Times is how often (default 3).
	Times int `json:"times,omitempty"`
	// Every is the time from one to the next (default 2s).
	Every labtest.Duration `json:"every,omitempty"`
	// Down is how long the link is down each time (default: half of Every).
	Down labtest.Duration `json:"down,omitempty"`
	Pos  diag.Pos         `json:"-"`
}

// Time is a time since the beginning, written as 0s, 500ms or 2m.
type Time struct {
	labtest.Duration
	given bool
}

// DecodeYAML reads a time, which may be 0s.
func (t *Time) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	t.given = true
	if n.Value == "0s" || n.Value == "0" {
		return
	}
	t.Duration.DecodeYAML(d, n, path)
}

// Names is a name or a list of names.
type Names []string

// DecodeYAML reads one name or several.
func (s *Names) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.ScalarNode {
		var list []string
		d.Decode(n, &list, path)
		*s = list
		return
	}
	if text, ok := d.Text(n, path); ok {
		*s = Names{text}
	}
}
