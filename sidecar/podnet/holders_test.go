package podnet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/sidecar/hold"
)

// netnsOf is the network namespace of a process.
func netnsOf(t *testing.T, pid int) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d/ns/net", pid), &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

// Who holds the namespace ends, one after the other and under traffic: the device keeps its
// interfaces, and its traffic goes on.
func TestHoldersEnd(t *testing.T) {
	c := newCluster(t)
	for n, name := range []string{"r1", "r2"} {
		doc := mgmtDoc(11 + n)
		doc.Interfaces = append(doc.Interfaces, wired(iface(name, "eth1", n+1), 5, []string{"r2", "r1"}[n]))
		c.newPod(name, doc)
	}
	c.startAll()
	a, b := c.pods[0], c.pods[1]
	eventually(t, "the wire is up", b.ready)
	own := netnsOf(t, b.child())
	index0, index1 := b.index("eth0"), b.index("eth1")
	holder := func() error { // the helper has the namespace
		if c := holds(b.helper.Process.Pid, own); c == 0 {
			return errors.New("the helper holds nothing")
		}
		return nil
	}
	for _, end := range []struct {
		name string
		do   func()
	}{
		{"the sidecar", func() { _ = syscall.Kill(b.child(), syscall.SIGKILL) }},
		{"the helper", func() { b.helpAgain() }},
		{"the supervisor", func() { b.kill(); b.start() }},
		{"sidecar and helper", func() { _ = syscall.Kill(b.child(), syscall.SIGKILL); b.helpAgain() }},
		{"the helper, then the supervisor", func() {
			b.helpAgain()
			eventually(t, "the next helper has the namespace", holder)
			b.kill()
			b.start()
		}},
	} {
		eventually(t, "the helper has the namespace", holder)
		changes := b.in("cat /sys/class/net/eth1/carrier_changes")
		began := time.Now()
		end.do()
		b.waitStarted()
		if err := errors.Join(pingFrom(a.ns, "eth1", "10.9.0.2", sure), ping(a.ns, "172.20.20.12", sure), ping(b.ns, gateway4, sure)); err != nil {
			t.Errorf("after the end of %s: %v", end.name, err)
		}
		t.Logf("%s: traffic after %v, %s carrier changes before and %s after", end.name, time.Since(began).Round(time.Millisecond),
			strings.TrimSpace(changes), strings.TrimSpace(b.in("cat /sys/class/net/eth1/carrier_changes")))
		if n := netnsOf(t, b.child()); n != own {
			t.Errorf("after the end of %s the sidecar is in another namespace", end.name)
		}
		if b.index("eth0") != index0 || b.index("eth1") != index1 {
			t.Errorf("after the end of %s the device has other interfaces", end.name)
		}
	}
}

// helpAgain ends the helper and starts another one.
func (p *pod) helpAgain() {
	p.t.Helper()
	endOf(p.helper)
	p.helper = p.spawn(helperEnv + "=" + p.holdSocket())
}

// holds counts a process's descriptors of a namespace.
func holds(pid int, ino uint64) (n int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, f := range files {
		var st unix.Stat_t
		if unix.Stat(f, &st) == nil && st.Ino == ino {
			if link, _ := os.Readlink(f); strings.HasPrefix(link, "net:") {
				n++
			}
		}
	}
	return n
}

// Without supervisor and helper the namespace is gone: the next supervisor says so, and is
// not deceived by whoever offers it another one.
func TestNamespaceLost(t *testing.T) {
	c := newCluster(t)
	p := c.newPod("r1", mgmtDoc(11))
	c.startAll()
	p.helper = endOf(p.helper)
	p.kill()
	// Somebody in the device's container offers what it has.
	p.helper = p.spawn(liarEnv + "=" + p.holdSocket())
	p.start()
	err := p.cmd.Wait()
	p.cmd = nil
	if err == nil {
		t.Error("the supervisor goes on without the namespace")
	}
	if log, err := os.ReadFile(filepath.Join(p.dir, "log")); err != nil || !strings.Contains(string(log), hold.ErrLost.Error()) {
		t.Errorf("the supervisor's last words: %s %v", log, err)
	}
	if err := p.has("eth0"); err == nil {
		t.Error("eth0 is still there, and leads nowhere")
	}
}

// lie offers the Pod's own namespace as the sidecar's, to whoever asks.
func lie(socket string) {
	own, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return
	}
	for {
		c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socket, Net: "unixpacket"})
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		_, _, _ = c.WriteMsgUnix([]byte{'c'}, unix.UnixRights(int(own.Fd())), nil)
		_, _ = c.Read(make([]byte, 1))
		c.Close()
	}
}
