package podnet

import (
	"syscall"
	"testing"
	"time"
)

// A sidecar that gets no processor time is not lost: the far ends of its wires stay up,
// and traffic goes on when it does.
func TestStarved(t *testing.T) {
	c := newCluster(t)
	for n, name := range []string{"r1", "r2"} {
		doc := mgmtDoc(11 + n)
		doc.Interfaces = append(doc.Interfaces, wired(iface(name, "eth1", n+1), 5, []string{"r2", "r1"}[n]))
		c.newPod(name, doc)
	}
	c.startAll()
	a, b := c.pods[0], c.pods[1]
	for _, p := range c.pods {
		eventually(t, p.name+" is ready", p.ready)
		eventually(t, "carrier of "+p.name, func() error { return p.carrier("eth1") })
	}
	changes := func() string { return a.in("cat /sys/class/net/eth1/carrier_changes") }
	before := changes()
	if err := syscall.Kill(b.child(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second) // time in which the peer could be lost
	if err := a.carrier("eth1"); err != nil || changes() != before {
		t.Errorf("beside a sidecar that does not run: %v, carrier changes %s, before %s", err, changes(), before)
	}
	if err := syscall.Kill(b.child(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := pingFrom(a.ns, "eth1", "10.9.0.2", sure); err != nil {
		t.Error(err)
	}
	b.kill()
	eventually(t, "the wire of one that was killed goes down", func() error {
		if a.carrier("eth1") == nil {
			return errReached
		}
		return nil
	})
}
