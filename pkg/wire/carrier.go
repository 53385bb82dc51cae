package wire

// carrier is what decides whether a leg is up: the device at its other side then
// sees its cable plugged in.
type carrier struct {
	// observed tells that device is known; device is the state of the device's
	// side when last seen.
	observed, device bool
	// settled: long enough after the start that a peer could have been found.
	settled bool
	// session with the peer; known, if its state of the wires has come; listed,
	// if this wire is among them; remote, the state of the device's side there.
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
	reasonNoLeg   = "the leg is missing"
)

// leg tells whether the leg is to be up; keep means as it is. The leg of a device
// that is down stays up, since only so can it be seen to come up: that makes it
// impossible that both ends wait for each other.
func (c carrier) leg() (up, keep bool, reason string) {
	if c.observed && !c.device {
		return true, false, reasonDevice
	}
	switch {
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

// told is what the far end hears of this end's device. What was never seen counts
// as up, as the leg may be down for the far end's sake.
func (c carrier) told() bool { return !c.observed || c.device }
