package wire

// carrier holds the conditions for a leg to be up. The device at its other side then
// sees a carrier.
type carrier struct {
	// observed is set if device is known. device is the last observed state of the
	// device's side.
	observed, device bool
	// cut: the impairment of an end takes the carrier away.
	cut bool
	// settled: a peer would have been found by now.
	settled bool
	// session: there is one with the peer. known: its state of the wires has arrived.
	// listed: this wire is among them. remote: the state of the device's side there.
	session, known, listed, remote bool
}

// ReasonStarting is the reason of a wire that has just started: its leg is as an earlier
// process left it.
const ReasonStarting = "looking for the peer"

// The other reasons of a wire that is down.
const (
	reasonNoPeer  = "no answer from the peer"
	reasonNoState = "waiting for the peer's state"
	reasonNoWire  = "the peer has no such wire"
	reasonFarDown = "the far end is down"
	reasonDevice  = "the device's interface is down"
	reasonCut     = "taken down by its impairment"
	reasonNoLeg   = "the leg is missing"
)

// leg reports whether the leg should be up. keep means that it should stay as it is. The
// leg of a device that is down stays up: otherwise the device could not be observed to
// come up, and both ends could wait for each other.
func (c carrier) leg() (up, keep bool, reason string) {
	switch {
	case c.cut:
		return false, false, reasonCut
	case c.observed && !c.device:
		return true, false, reasonDevice
	case !c.session && !c.settled:
		return false, true, ReasonStarting
	case !c.session:
		return false, false, reasonNoPeer
	case !c.known:
		return false, true, reasonNoState
	case !c.listed && !c.settled:
		return false, true, reasonNoWire
	case !c.listed:
		return false, false, reasonNoWire
	case !c.remote:
		return false, false, reasonFarDown
	}
	return true, false, ""
}

// reported is the state of the device that the far end receives. A device that was never
// observed counts as up, since the leg may be down because of the far end. A link that is cut
// is down at both ends.
func (c carrier) reported() bool { return !c.cut && (!c.observed || c.device) }
