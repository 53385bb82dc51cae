package contract

import "net/netip"

// MeasureRequest is what the sidecar's subcommand measure reads from standard input. All of
// its parts are measured at the same time.
type MeasureRequest struct {
	Frames *FramesRequest `json:"frames,omitempty"`
	Pings  []PingRequest  `json:"pings,omitempty"`
	Traces []TraceRequest `json:"traces,omitempty"`
	// Names are looked up as the devices do.
	Names []string `json:"names,omitempty"`
	// Addresses asks for the addresses of the node's interfaces.
	Addresses bool `json:"addresses,omitempty"`
}

// Measurement is the answer. Its lists are in the order of the request.
type Measurement struct {
	Frames    []FrameResult `json:"frames,omitempty"`
	Pings     []PingResult  `json:"pings,omitempty"`
	Traces    []TraceResult `json:"traces,omitempty"`
	Names     []NameResult  `json:"names,omitempty"`
	Addresses []netip.Addr  `json:"addresses,omitempty"`
}

// FramesRequest asks for an exchange of frames with the far ends of links. Each end sends
// frames as large as its interface can until both have heard one another.
type FramesRequest struct {
	// Nonce is the same at both ends, and new for each exchange.
	Nonce uint64 `json:"nonce"`
	// Seconds is how long to try.
	Seconds    float64    `json:"seconds"`
	Interfaces []FrameEnd `json:"interfaces"`
}

// FrameEnd is one end of a link. Self and Peer are NODE:INTERFACE.
type FrameEnd struct {
	Interface string `json:"interface"`
	Self      string `json:"self"`
	Peer      string `json:"peer"`
	// Size is the size of the packets in bytes, 0 for the interface's MTU.
	Size int `json:"size,omitempty"`
}

// FrameResult is what one end has heard.
type FrameResult struct {
	// MTU is the interface's, 0 if it is not in the node's network namespace.
	MTU int  `json:"mtu,omitempty"`
	Up  bool `json:"up,omitempty"`
	// Heard is the size of the largest packet from the peer, in bytes.
	Heard int `json:"heard,omitempty"`
	// Stranger is another end that was heard, which means that the link leads there.
	Stranger string `json:"stranger,omitempty"`
	Error    string `json:"error,omitempty"`
}

// PingRequest asks for echo requests from the node to an address.
type PingRequest struct {
	To netip.Addr `json:"to"`
	// Source is the address to send from, Device the interface or VRF to send by.
	Source netip.Addr `json:"source,omitzero"`
	Device string     `json:"device,omitempty"`
	// Gateway sends from the node's gateway on the management network, and not from the node.
	Gateway bool `json:"gateway,omitempty"`
	// Size is the size of the packets in bytes, which are not fragmented; 0 for small ones.
	Size int `json:"size,omitempty"`
	// Count is the number of requests (0 for 1), IntervalMS the time between two, and
	// TimeoutMS how long to wait after the last one.
	Count      int `json:"count,omitempty"`
	IntervalMS int `json:"intervalMs,omitempty"`
	TimeoutMS  int `json:"timeoutMs,omitempty"`
}

// PingResult counts the answers.
type PingResult struct {
	Sent     int `json:"sent"`
	Received int `json:"received"`
	// LongestMS is the longest time without an answer in milliseconds, between the sending
	// of two requests that were answered, or the end.
	LongestMS int `json:"longestMs"`
	// LastAnswered is set if the last requests were answered.
	LastAnswered bool `json:"lastAnswered"`
	// Outages are the longest times without an answer, at most MaxOutages of them, in their
	// order; MoreOutages is how many there are besides.
	Outages     []PingOutage `json:"outages,omitempty"`
	MoreOutages int          `json:"moreOutages,omitempty"`
	// TookMS is the time from the first request to the end, in milliseconds.
	TookMS int    `json:"tookMs,omitempty"`
	Error  string `json:"error,omitempty"`
}

// MaxOutages is how many outages are reported.
const MaxOutages = 100

// PingOutage is a time without an answer, in milliseconds.
type PingOutage struct {
	// AtMS is when it began, since the first request.
	AtMS     int `json:"atMs"`
	LengthMS int `json:"lengthMs"`
}

// TraceRequest asks for the path to an address.
type TraceRequest struct {
	To     netip.Addr `json:"to"`
	Device string     `json:"device,omitempty"`
	// Hops is the largest number of routers.
	Hops int `json:"hops"`
}

// TraceResult holds the address of each hop, the zero value for one that is silent.
type TraceResult struct {
	Hops    []netip.Addr `json:"hops"`
	Arrived bool         `json:"arrived"`
	Error   string       `json:"error,omitempty"`
}

// NameResult holds the addresses of a name.
type NameResult struct {
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Error     string       `json:"error,omitempty"`
}
