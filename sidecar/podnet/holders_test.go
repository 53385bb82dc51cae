package podnet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
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

// Processes of a Pod end, one or two at a time and under traffic: the device keeps its
// interfaces and their carriers, and its traffic goes on. The longest pause of each is
// logged, beside the machine's own.
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
	if err := errors.Join(pingFrom(a.ns, "eth1", "10.9.0.2", sure), ping(a.ns, "172.20.20.12", sure)); err != nil {
		t.Fatal(err)
	}
	own := netnsOf(t, b.child())
	index0, index1 := b.index("eth0"), b.index("eth1")
	device := b.device()
	holder := func() error { // the helper has the namespace
		if c := holds(b.helper.Process.Pid, own); c == 0 {
			return errors.New("the helper holds nothing")
		}
		return nil
	}
	child := func() { _ = syscall.Kill(b.child(), syscall.SIGKILL) }
	helper := func() { b.helpAgain() }
	supervisor := func() { b.kill(); b.start() }
	restart := func() { endOf(device); device = b.device() }
	for _, end := range []struct {
		name string
		do   []func()
	}{
		{"the sidecar", []func(){child}},
		{"the supervisor", []func(){supervisor}},
		{"the helper", []func(){helper}},
		{"the device", []func(){restart}},
		{"sidecar and helper", []func(){child, helper}},
		{"sidecar and device", []func(){child, restart}},
		{"supervisor and device", []func(){supervisor, restart}},
		// Its container has both.
		{"helper and device", []func(){helper, restart}},
		{"the helper, then the supervisor", []func(){helper, func() { eventually(t, "the next helper has the namespace", holder) }, supervisor}},
	} {
		eventually(t, "the helper has the namespace", holder)
		changes := strings.TrimSpace(b.in("cat /sys/class/net/eth1/carrier_changes"))
		link, mesh, machine := startFlow(t, a.ns, "eth1", "10.9.0.2"), startFlow(t, a.ns, "", "172.20.20.12"), startFlow(t, a.ns, "", "127.0.0.1")
		for _, do := range end.do {
			do()
		}
		b.waitStarted()
		if err := errors.Join(pingFrom(a.ns, "eth1", "10.9.0.2", sure), ping(a.ns, "172.20.20.12", sure), ping(b.ns, gateway4, sure)); err != nil {
			t.Errorf("after the end of %s: %v", end.name, err)
		}
		t.Logf("%s: the link paused for %v, the management network for %v, the machine for %v", end.name, link.longest(), mesh.longest(), machine.longest())
		if now := strings.TrimSpace(b.in("cat /sys/class/net/eth1/carrier_changes")); now != changes {
			t.Errorf("%s: %s carrier changes before and %s after", end.name, changes, now)
		}
		if n := netnsOf(t, b.child()); n != own {
			t.Errorf("after the end of %s the sidecar is in another namespace", end.name)
		}
		if b.index("eth0") != index0 || b.index("eth1") != index1 {
			t.Errorf("after the end of %s the device has other interfaces", end.name)
		}
	}
}

// device is a process in the device's container: it holds nothing of the sidecar's.
func (p *pod) device() *exec.Cmd {
	p.t.Helper()
	cmd := exec.Command("ip", "netns", "exec", p.ns, "sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { endOf(cmd) })
	return cmd
}

// flow is echo requests, one each flowEvery, and when they were answered.
type flow struct {
	stop chan struct{}
	done chan time.Duration
}

const flowEvery = 20 * time.Millisecond

// startFlow sends echo requests from a namespace, by an interface where one is given.
func startFlow(t *testing.T, ns, dev, to string) *flow {
	t.Helper()
	f := &flow{stop: make(chan struct{}), done: make(chan time.Duration, 1)}
	ready := make(chan struct{})
	go func() {
		longest, last, first := time.Duration(0), time.Now(), true
		note := func() {
			longest, last = max(longest, time.Since(last)), time.Now()
		}
		defer func() { note(); f.done <- longest.Round(time.Millisecond) }()
		for {
			select {
			case <-f.stop:
				return
			default:
			}
			if pingFrom(ns, dev, to, 250*time.Millisecond) == nil {
				if first {
					longest, last, first = 0, time.Now(), false
					close(ready)
				}
				note()
			}
			time.Sleep(flowEvery)
		}
	}()
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatalf("no answer from %s", to)
	}
	return f
}

// longest ends the flow, and returns the longest time without an answer.
func (f *flow) longest() time.Duration {
	close(f.stop)
	return <-f.done
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
	supervisor := p.cmd
	end := time.AfterFunc(time.Minute, func() { _ = supervisor.Process.Kill() })
	err := supervisor.Wait()
	p.cmd = nil
	if !end.Stop() {
		t.Error("the supervisor does not end")
	}
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
