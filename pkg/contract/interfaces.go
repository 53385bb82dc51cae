package contract

import "time"

// InterfaceEvent is a line that the sidecar prints about an interface of its Pod's devices.
type InterfaceEvent struct {
	Time   time.Time `json:"time"`
	Action string    `json:"action"`
	// Interface is not set for ActionKnown.
	Interface InterfaceFacts `json:"interface,omitzero"`
}

// The actions of an InterfaceEvent, containerlab's own but for ActionKnown, which follows the
// snapshots of all present interfaces.
const (
	ActionSnapshot = "snapshot"
	ActionKnown    = "known"
	ActionCreate   = "create"
	ActionUpdate   = "update"
	ActionDelete   = "delete"
	ActionStats    = "stats"
)

// InterfaceFacts describe an interface as the kernel has it.
type InterfaceFacts struct {
	Name string `json:"name"`
	// Node is set for an interface outside the devices' network namespace: the port of a
	// bridge, or one that a device has moved to another namespace.
	Node  string `json:"node,omitempty"`
	Alias string `json:"alias,omitempty"`
	MAC   string `json:"mac,omitempty"`
	Index int    `json:"index"`
	MTU   int    `json:"mtu"`
	Type  string `json:"type"`
	// State is the operational state (RFC 2863): up, down, unknown, ...
	State string `json:"state"`
	// Impairment is what is done to the frames that it sends; nil for nothing.
	Impairment *Impairment       `json:"impairment,omitempty"`
	Counters   InterfaceCounters `json:"counters,omitzero"`
}

// InterfaceCounters are those of an interface since it was made.
type InterfaceCounters struct {
	RxBytes   uint64 `json:"rxBytes"`
	TxBytes   uint64 `json:"txBytes"`
	RxPackets uint64 `json:"rxPackets"`
	TxPackets uint64 `json:"txPackets"`
	RxErrors  uint64 `json:"rxErrors,omitempty"`
	TxErrors  uint64 `json:"txErrors,omitempty"`
	RxDropped uint64 `json:"rxDropped,omitempty"`
	TxDropped uint64 `json:"txDropped,omitempty"`
}
