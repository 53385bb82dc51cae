package graph

// NodeState is the state of a node in a running lab.
type NodeState struct {
	// State is one of the states of package status.
	State    string `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Worker   string `json:"worker,omitempty"`
	Pod      string `json:"pod,omitempty"`
	Restarts int    `json:"restarts"`
	// Commands are what a user can do with the node.
	Commands []Command `json:"commands,omitempty"`
}

// LinkState is the state of a link in a running lab. What has two values has that of the end
// From first.
type LinkState struct {
	// State is up, degraded, down or unknown.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Carrier is up or down, "" where no sidecar answers.
	Carrier  [2]string `json:"carrier"`
	Datapath string    `json:"datapath,omitempty"`
	// Rate is what each end sends, in bit/s; nil until it has been measured.
	Rate *[2]float64 `json:"rate,omitempty"`
	// RTT is in milliseconds. Loss is the share of lost heartbeats in percent.
	RTT   float64 `json:"rttMs,omitempty"`
	Loss  float64 `json:"lossPercent,omitempty"`
	Drops uint64  `json:"drops"`
	// Impairment is what is done to the frames that each end sends, "" for nothing.
	Impairment [2]string `json:"impairment"`
	Commands   []Command `json:"commands,omitempty"`
}

// Command is a command line with what it is for.
type Command struct {
	Label string `json:"label"`
	Line  string `json:"line"`
}

// tone is what a state means to somebody who looks at a picture.
type tone int

const (
	toneNone tone = iota // nothing is known
	toneGood
	toneBusy
	toneWarn
	toneBad
	toneOff
)

// tones are the names, and the colours on a light background, of the tones.
var tones = []struct{ name, fill, stroke string }{
	toneNone: {"none", "#ebebeb", "#777777"},
	toneGood: {"good", "#d3f0dc", "#1a6b35"},
	toneBusy: {"busy", "#d6e6fb", "#2563b0"},
	toneWarn: {"warn", "#fdebc0", "#9a6700"},
	toneBad:  {"bad", "#fbd3d3", "#b42318"},
	toneOff:  {"off", "#e3e3e3", "#777777"},
}

func (s *NodeState) tone() tone {
	if s == nil {
		return toneNone
	}
	switch s.State {
	case "ready":
		return toneGood
	case "degraded", "terminating":
		return toneWarn
	case "failed":
		return toneBad
	case "stopped":
		return toneOff
	}
	return toneBusy
}

func (s *LinkState) tone() tone {
	if s == nil {
		return toneNone
	}
	switch s.State {
	case "up":
		return toneGood
	case "degraded":
		return toneWarn
	case "down":
		return toneBad
	}
	return toneNone
}

// live reports whether the graph is of a running lab.
func (g *Graph) live() bool { return g.State != "" }
