package capture

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/capture"
	"github.com/c9s-lab/c9s/pkg/capture/filter"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/c9s-lab/c9s/pkg/wire/virtio"
	"github.com/c9s-lab/c9s/sidecar/api"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// pod is a device's namespace and the sidecar's, with a leg between them.
type pod struct {
	testing.TB
	own, device *nspace.Namespace
	leg         int
}

func newPod(t testing.TB) *pod {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	p := &pod{TB: t}
	handles := map[**nspace.Namespace]*netlink.Handle{&p.own: nil, &p.device: nil}
	for at := range handles {
		ns, err := nspace.New()
		p.must(err)
		t.Cleanup(func() { ns.Close() })
		h, err := netlink.NewHandleAt(netns.NsHandle(ns.FD()), unix.NETLINK_ROUTE)
		p.must(err)
		t.Cleanup(h.Close)
		*at, handles[at] = ns, h
	}
	own, device := handles[&p.own], handles[&p.device]
	p.must(own.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "leg", MTU: 1500}, PeerName: "eth1", PeerNamespace: netlink.NsFd(p.device.FD())}))
	for h, end := range map[*netlink.Handle][2]string{own: {"leg", "10.0.0.1/24"}, device: {"eth1", "10.0.0.2/24"}} {
		l, err := h.LinkByName(end[0])
		p.must(err)
		address, err := netlink.ParseAddr(end[1])
		p.must(err)
		p.must(h.AddrAdd(l, address))
		p.must(h.LinkSetUp(l))
		if h == own {
			p.leg = l.Attrs().Index
		}
	}
	return p
}

func (p *pod) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// capture runs a capture of eth1 while a function runs, and returns the frames and the last
// state.
func (p *pod) capture(filterText string, during func()) (frames []*capture.Frame, last *capture.State) {
	p.Helper()
	program, err := filter.Compile(filterText)
	p.must(err)
	request := capture.Request{Interfaces: []capture.Interface{{Node: "R1", Name: "eth1"}, {Node: "R1", Name: "eth9"}}}
	for _, i := range program {
		request.Filter = append(request.Filter, capture.Instruction{uint32(i.Op), uint32(i.Jt), uint32(i.Jf), i.K})
	}
	line, err := json.Marshal(request)
	p.must(err)
	s := &Session{Device: p.device, Own: p.own, Status: func(context.Context) (api.Status, error) {
		return api.Status{Pod: "r1", Worker: "w1", Fabric: wire.Status{Epoch: 7, Clock: &wire.Clock{Base: 8, Peers: []wire.PeerClock{{Pod: "r2", Epoch: 9, Ahead: -10, Error: 11}}}}, Interfaces: []api.Interface{
			{Node: "R1", Name: "eth1", Kind: "wire", State: api.StateMade, Linux: "eth1", Leg: "leg", PeerNode: "R2", PeerInterface: "eth4"},
		}}, nil
	}}
	in, ask := io.Pipe()
	out, write := io.Pipe()
	go func() { _, _ = ask.Write(append(line, '\n')) }()
	failed := make(chan error, 1)
	go func() {
		failed <- s.Run(p.Context(), in, write)
		write.Close()
	}()
	d := capture.NewDecoder(out, 2)
	for {
		r, err := d.Next()
		if err == io.EOF {
			break
		}
		p.must(err)
		switch {
		case r.Frame != nil:
			frames = append(frames, r.Frame)
		case r.State != nil && last == nil: // the taps are there
			last = r.State
			go func() {
				during()
				ask.Close()
			}()
		case r.State != nil:
			last = r.State
		}
	}
	p.must(<-failed)
	return frames, last
}

// Frames of both directions are captured, also those that a datapath writes past the queues, and
// the filter leaves out the others.
func TestDirections(t *testing.T) {
	p := newPod(t)
	received := make([]byte, 60)
	copy(received, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x99\x99from the wire")
	began := time.Now()
	frames, last := p.capture("ether proto 0x9999 or (udp port 9 and not port 10)", func() {
		p.must(p.device.Do(func() error {
			for _, to := range []string{"10.0.0.1:9", "10.0.0.1:10"} {
				c, err := net.Dial("udp", to)
				if err != nil {
					return err
				}
				_, err = c.Write([]byte("from the device"))
				c.Close()
				if err != nil {
					return err
				}
			}
			return nil
		}))
		p.must(p.own.Do(func() error {
			sock, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
			if err != nil {
				return err
			}
			defer unix.Close(sock)
			if err := unix.SetsockoptInt(sock, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
				return err
			}
			return unix.Sendto(sock, received, 0, &unix.SockaddrLinklayer{Ifindex: p.leg, Protocol: datapath.Htons(unix.ETH_P_ALL)})
		}))
	})
	got := map[capture.Direction]string{}
	for _, f := range frames {
		got[f.Direction] = string(f.Data)
		if at := time.Unix(0, f.Time); f.Interface != 0 || at.Before(began) || at.After(time.Now()) || f.Length != len(f.Data) {
			t.Errorf("%+v", f)
		}
	}
	if len(frames) != 2 || got[capture.In] != string(received) || len(got[capture.Out]) != 14+20+8+15 {
		t.Errorf("%d frames: %q", len(frames), got)
	}
	if !last.End || last.Interfaces[0].Received != 2 || last.Interfaces[0].Dropped != 0 || last.Interfaces[0].Peer != "R2:eth4" || last.Interfaces[1].Error == "" {
		t.Errorf("the last state: %+v", last)
	}
	if last.Worker != "w1" || last.Clock == nil || last.Clock.Epoch != 7 || last.Clock.Base != 8 || len(last.Clock.Peers) != 1 || last.Clock.Peers[0] != (capture.PeerClock{Pod: "r2", Epoch: 9, Offset: -10, Error: 11}) {
		t.Errorf("the clock: %+v", last.Clock)
	}
}

// Super-frames are cut to the MTU, and every checksum is complete.
func TestSuperFrames(t *testing.T) {
	p := newPod(t)
	const size = 1 << 20
	frames, last := p.capture("tcp", func() {
		var l net.Listener
		p.must(p.own.Do(func() (err error) {
			l, err = net.Listen("tcp", "10.0.0.1:0")
			return err
		}))
		defer l.Close()
		go func() {
			_ = p.device.Do(func() error {
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					return err
				}
				defer c.Close()
				_, err = c.Write(make([]byte, size))
				return err
			})
		}()
		c, err := l.Accept()
		p.must(err)
		defer c.Close()
		n, err := io.Copy(io.Discard, c)
		if n != size || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	payload, cut := 0, 0
	for _, f := range frames {
		if f.Length > 1514 || len(f.Data) != f.Length {
			t.Fatalf("a frame of %d bytes", f.Length)
		}
		ip := f.Data[14:]
		length := int(binary.BigEndian.Uint16(ip[2:]))
		tcp := ip[20:length]
		if sum := virtio.Fold(virtio.AddSum(virtio.AddSum(uint64(6+len(tcp)), ip[12:20]), tcp)); sum != 0xffff {
			t.Fatalf("the checksum of a frame of %d bytes is wrong: %x", f.Length, sum)
		}
		if f.Direction == capture.Out {
			payload += len(tcp) - int(tcp[12]>>4)*4
		}
		if f.Segments > 0 {
			cut++
		}
	}
	if payload < size || cut == 0 || last.Interfaces[0].Dropped != 0 {
		t.Errorf("%d bytes of payload in %d frames, %d of them cut, %d dropped", payload, len(frames), cut, last.Interfaces[0].Dropped)
	}
}
