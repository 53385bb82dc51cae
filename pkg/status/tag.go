package status

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Old reports whether an answer of that age in seconds is stale.
func Old(age float64) bool { return age > fresh.Seconds() }

// Tag returns a digest of the lab's states and their reasons. It does not change with
// counters and round-trip times.
func (l Lab) Tag() string {
	h := sha256.New()
	fmt.Fprintln(h, l.State, l.Leftover)
	for _, n := range l.Nodes {
		fmt.Fprintf(h, "%q %s %q %d %s %s %s %d %q %v\n", n.Name, n.State, n.Reason, n.Restarts, n.Worker, n.PodName, n.Mesh, n.MeshPeers, n.MeshLost, n.Age != nil && Old(*n.Age))
		for _, c := range n.Unfinished() {
			fmt.Fprintf(h, "%d %v %d %q\n", c.Step, c.Running, c.ExitCode, c.Error)
		}
	}
	for _, k := range l.Links {
		fmt.Fprintf(h, "%d %q %q %q %q %v %v %s %q %s %q %v\n", k.ID, k.A.Node, k.A.Interface, k.B.Node, k.B.Interface,
			k.A.Carrier, k.B.Carrier, k.State, k.Reason, k.Datapath, k.Impairments(), Old(k.Age))
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
