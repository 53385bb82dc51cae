// Package api is what a Pod's sidecar tells over HTTP: the types of /status and
// clients for it.
package api

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire"
)

// Version names the shape of Status in JSON.
const Version = "c9s.dev/status/v1"

// QueryWait is how long (time.ParseDuration) PathStartup and PathReady may hold an
// answer that is not 200, in case it becomes 200.
const QueryWait = "wait"

// QuerySince is the Tag of the Status that the client of PathStatus has: the sidecar
// holds the answer until the status changes, for at most HoldStatus. A byte of white space every
// BeatStatus shows that the sidecar still answers.
const QuerySince = "since"

// The times of a held answer.
const (
	HoldStatus = 30 * time.Second
	BeatStatus = time.Second
)

// The paths of the HTTP server.
const (
	// PathStartup answers 200 as soon as devices may start.
	PathStartup = "/startup"
	// PathReady answers 200 while all that the Pod has of links works.
	PathReady = "/ready"
	// PathLive answers 200 unless the sidecar is stuck.
	PathLive = "/live"
	// PathStatus answers with a Status.
	PathStatus = "/status"
	// PathStages takes pod, node and stage, and answers 204 where the stage is
	// over, 202 where it is not yet.
	PathStages = "/stages"
	// PathBridge takes node and object, and shows of a bridge node what bridge(8) does
	// of a bridge. Only this Pod's own sockets have it.
	PathBridge = "/bridge"
	// PathLogin takes the ID of a node, logs in to it by SSH, and answers 204 if that succeeds, 503
	// with the reason if not. Only this Pod's own sockets have it.
	PathLogin = "/login"
	// PathBoot takes the controller's answer to a Pod that waits for its turn to boot: QueryTurn,
	// or QueryAhead, the number of Pods that are before it. It answers 204.
	PathBoot = "/boot"
	// PathMetrics answers in Prometheus' text format.
	PathMetrics = "/metrics"
)

// Status is a Pod's network as its sidecar sees it.
type Status struct {
	Version string `json:"version"`
	// Sidecar is the version of the program.
	Sidecar string `json:"sidecar"`
	Lab     string `json:"lab"`
	// Pod is the name of the Pod's objects, PodName that of the running Pod.
	Pod       string       `json:"pod"`
	PodName   string       `json:"podName"`
	Namespace string       `json:"namespace"`
	Worker    string       `json:"worker"`
	Addresses []netip.Addr `json:"addresses"`
	// Started is when this process began; Restarts counts those before it in
	// this Pod.
	Started  time.Time `json:"started"`
	Restarts int       `json:"restarts"`
	// Startup, Ready tell what the probes answer, and StartupReason and
	// ReadyReason why not.
	Startup       bool   `json:"startup"`
	StartupReason string `json:"startupReason,omitempty"`
	Ready         bool   `json:"ready"`
	ReadyReason   string `json:"readyReason,omitempty"`
	// Links is the digest of the links.json that was last applied.
	Links      string      `json:"links,omitempty"`
	Mgmt       *Mgmt       `json:"mgmt,omitempty"`
	Interfaces []Interface `json:"interfaces"`
	Fabric     wire.Status `json:"fabric"`
	Programs   []Program   `json:"programs,omitempty"`
	// Boot is the Pod's turn to boot, nil in a lab without a limit.
	Boot *Boot `json:"boot,omitempty"`
	// LastError is what went wrong last, also where it has passed since.
	LastError   string    `json:"lastError,omitempty"`
	LastErrorAt time.Time `json:"lastErrorAt,omitzero"`
}

// The parameters of PathBoot.
const (
	QueryTurn  = "turn"
	QueryAhead = "ahead"
)

// Boot is a Pod's turn to boot its devices.
type Boot struct {
	// PerWorker is the limit of the lab.
	PerWorker int `json:"perWorker"`
	// Since is when the Pod began to wait for its turn, zero before.
	Since time.Time `json:"since,omitzero"`
	// Began is when the devices could start, zero before.
	Began time.Time `json:"began,omitzero"`
}

// Mgmt is the management interface.
type Mgmt struct {
	Interface string       `json:"interface"`
	IPv4      netip.Prefix `json:"ipv4,omitzero"`
	IPv6      netip.Prefix `json:"ipv6,omitzero"`
	// Made is set if the interface and its router are there.
	Made bool `json:"made"`
	// Peers are the Pods that are talked to.
	Peers []Peer `json:"peers,omitempty"`
}

// Peer is another Pod on the management network.
type Peer struct {
	Pod string `json:"pod"`
	// Address is where it is, as its session says; absent while it is lost.
	Address netip.Addr `json:"address,omitzero"`
	// Up reports whether it is there, RTT how far away, in milliseconds.
	Up  bool    `json:"up"`
	RTT float64 `json:"rttMs,omitempty"`
}

// Interface is one data interface.
type Interface struct {
	Node string `json:"node"`
	// Name is links.json's, Linux the one in the kernel.
	Name string `json:"name"`
	// Kind is wire, local, host, macvlan, vxlan, vxlan-stitch, mgmt-net, dummy.
	Kind string `json:"kind"`
	// Wire is the number of its wire or of its local link, PeerNode and
	// PeerInterface name the far end; none of them for other kinds.
	Wire          contract.WireID `json:"wire,omitempty"`
	PeerNode      string          `json:"peerNode,omitempty"`
	PeerInterface string          `json:"peerInterface,omitempty"`
	// State is made, held (waiting for other nodes), elsewhere (the device moved
	// it to a namespace of its own) or failed.
	State string `json:"state"`
	Linux string `json:"linux,omitempty"`
	Index int    `json:"index,omitempty"`
	// Up is the administrative state, Carrier that of the line.
	Up      bool   `json:"up"`
	Carrier bool   `json:"carrier"`
	MAC     string `json:"mac,omitempty"`
	MTU     int    `json:"mtu,omitempty"`
	Leg     string `json:"leg,omitempty"`
	Error   string `json:"error,omitempty"`
	// Counters are the kernel's, nil where there is no interface to read them from.
	Counters *Counters `json:"counters,omitempty"`
}

// Impairment returns what an interface does to the frames that it sends, nil for nothing. w is
// its wire, which may be nil. Both ends of a link inside a Pod have one wire, whose Impairment is
// that of the first end by name.
func (i *Interface) Impairment(w *wire.WireStatus) *contract.Impairment {
	switch {
	case w == nil:
		return nil
	case i.Kind == "local" && cmp.Or(strings.Compare(i.Node, i.PeerNode), strings.Compare(i.Name, i.PeerInterface)) > 0:
		return w.ReverseImpairment
	}
	return w.Impairment
}

// Impairments returns the impairments of all interfaces, by their names in the kernel.
func (s Status) Impairments() map[string]contract.Impairment {
	out := map[string]contract.Impairment{}
	for n := range s.Interfaces {
		in := &s.Interfaces[n]
		i := slices.IndexFunc(s.Fabric.Wires, func(w wire.WireStatus) bool { return in.Wire != 0 && w.ID == in.Wire })
		if i < 0 || in.Linux == "" {
			continue
		}
		if imp := in.Impairment(&s.Fabric.Wires[i]); imp.Any() {
			out[in.Linux] = *imp
		}
	}
	return out
}

// Counters count the frames of an interface, as its device sees them: Tx is what it sends.
type Counters struct {
	RxFrames uint64 `json:"rxFrames"`
	RxBytes  uint64 `json:"rxBytes"`
	TxFrames uint64 `json:"txFrames"`
	TxBytes  uint64 `json:"txBytes"`
}

// The states of an interface.
const (
	StateMade      = "made"
	StateHeld      = "held"
	StateElsewhere = "elsewhere"
	StateFailed    = "failed"
)

// Program is how far the commands in one device container are.
type Program struct {
	Node      string          `json:"node"`
	Container string          `json:"container"`
	Result    contract.Result `json:"result"`
}
