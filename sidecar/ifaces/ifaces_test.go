package ifaces

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// A watch prints what is there, what changes and, if asked, the counters.
func TestWatch(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to make a network namespace")
	}
	space, err := nspace.New()
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	changes := make(chan Impairments)
	go func() {
		ended <- space.Do(func() error { return Watch(ctx, write, 50*time.Millisecond, Impairments{"eth1": {Loss: 1}}, changes) })
		write.Close()
	}()
	events := make(chan contract.InterfaceEvent, 1000)
	go func() {
		defer close(events)
		lines := bufio.NewScanner(read)
		for lines.Scan() {
			var e contract.InterfaceEvent
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Error(err)
			}
			events <- e
		}
	}()
	next := func(action, name string) contract.InterfaceFacts {
		t.Helper()
		for late := time.After(10 * time.Second); ; {
			select {
			case e, ok := <-events:
				if !ok {
					t.Fatalf("it ended before %s of %q: %v", action, name, <-ended)
				}
				if e.Action == action && e.Interface.Name == name {
					return e.Interface
				}
			case <-late:
				t.Fatalf("no %s of %q", action, name)
			}
		}
	}
	if lo := next(contract.ActionSnapshot, "lo"); lo.MTU != 65536 || lo.State == "" {
		t.Errorf("lo is %+v", lo)
	}
	next(contract.ActionKnown, "")

	handle, err := netlink.NewHandleAt(netns.NsHandle(space.FD()), unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth1", MTU: 9000}, PeerName: "eth2"}
	if err := handle.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	if made := next(contract.ActionCreate, "eth1"); made.MTU != 9000 || made.MAC == "" || made.Type != "veth" || made.State != "down" {
		t.Errorf("eth1 is made as %+v", made)
	}
	for _, name := range []string{"eth1", "eth2"} {
		link, err := handle.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := handle.LinkSetUp(link); err != nil {
			t.Fatal(err)
		}
	}
	for next(contract.ActionUpdate, "eth1").State != "up" {
	}
	if s := next(contract.ActionStats, "eth1"); s.State != "up" || s.Impairment == nil || s.Impairment.Loss != 1 {
		t.Errorf("the counters say %+v", s)
	}
	// An impairment that changes is an update of its interface, and of no other.
	for _, to := range []Impairments{{"eth1": {Loss: 1, Down: true}}, {}} {
		changes <- to
		f := next(contract.ActionUpdate, "eth1")
		for f.Impairment != nil && f.Impairment.Loss == 1 && !f.Impairment.Down { // the kernel's, of before
			f = next(contract.ActionUpdate, "eth1")
		}
		if want := to.of("eth1"); (f.Impairment == nil) != (want == nil) || want != nil && *f.Impairment != *want {
			t.Errorf("the impairment is %+v, want %+v", f.Impairment, want)
		}
	}
	if err := handle.LinkDel(veth); err != nil {
		t.Fatal(err)
	}
	next(contract.ActionDelete, "eth1")
	cancel()
	for range events {
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Ports of bridges and interfaces that a device moved are not in its namespace.
func TestElsewhere(t *testing.T) {
	got := Elsewhere([]api.Interface{
		{Node: "r1", Name: "eth1", Linux: "eth1", State: api.StateMade},
		{Node: "r1", Name: "ethernet-1/1", Linux: "e1-1", State: api.StateMade},
		{Node: "br1", Name: "port1", Linux: "p1", State: api.StateMade, Up: true, Carrier: true, MTU: 9500},
		{Node: "r1", Name: "eth2", State: api.StateElsewhere},
		{Node: "r1", Name: "eth3", State: api.StateHeld},
	}, []contract.InterfaceFacts{{Name: "eth1"}, {Name: "e1-1"}})
	want := map[string]string{"port1": "up", "eth2": "unknown", "eth3": "down"}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for _, f := range got {
		if f.State != want[f.Name] || f.Node == "" {
			t.Errorf("%+v, want state %s", f, want[f.Name])
		}
	}
}
