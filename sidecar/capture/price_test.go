package capture

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/capture"
	"github.com/c9s-lab/c9s/pkg/capture/filter"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/api"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// priced are two Pods with two wires between them, which cross a veth pair in place of the Pod
// network.
type priced struct {
	testing.TB
	own, device [2]*nspace.Namespace
	legs        [2][2]int // by Pod and wire
	fabrics     [2]*wire.Fabric
}

func (p *priced) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// Lookup implements wire.Resolver.
func (p *priced) Lookup(_ context.Context, pod string) ([]netip.Addr, error) {
	return []netip.Addr{netip.AddrFrom4([4]byte{10, 9, 0, pod[0] - 'a' + 1})}, nil
}

func (p *priced) handle(n *nspace.Namespace) *netlink.Handle {
	h, err := netlink.NewHandleAt(netns.NsHandle(n.FD()), unix.NETLINK_ROUTE)
	p.must(err)
	p.Cleanup(h.Close)
	return h
}

// up gives an interface an address, and returns its index.
func (p *priced) up(h *netlink.Handle, name, address string) int {
	l, err := h.LinkByName(name)
	p.must(err)
	if address != "" {
		a, err := netlink.ParseAddr(address)
		p.must(err)
		p.must(h.AddrAdd(l, a))
	}
	p.must(h.LinkSetUp(l))
	return l.Attrs().Index
}

func newPriced(b testing.TB, datapath string) *priced {
	if os.Geteuid() != 0 {
		b.Skip("needs root: makes network namespaces")
	}
	p := &priced{TB: b}
	var own, device [2]*netlink.Handle
	for i := range 2 {
		for _, at := range []**nspace.Namespace{&p.own[i], &p.device[i]} {
			ns, err := nspace.New()
			p.must(err)
			b.Cleanup(func() { ns.Close() })
			*at = ns
		}
		own[i], device[i] = p.handle(p.own[i]), p.handle(p.device[i])
	}
	p.must(own[0].LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "c9s0", MTU: 9000}, PeerName: "c9s0", PeerNamespace: netlink.NsFd(p.own[1].FD())}))
	for i := range 2 {
		p.up(own[i], "c9s0", fmt.Sprintf("10.9.0.%d/24", i+1))
		var wires []wire.Wire
		for w := range 2 {
			leg, eth := fmt.Sprintf("leg%d", w+1), fmt.Sprintf("eth%d", w+1)
			p.must(own[i].LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: leg, MTU: 1500}, PeerName: eth, PeerNamespace: netlink.NsFd(p.device[i].FD())}))
			p.legs[i][w] = p.up(own[i], leg, "")
			p.up(device[i], eth, fmt.Sprintf("10.0.%d.%d/24", w+1, i+1))
			wires = append(wires, wire.Wire{ID: contract.WireID(w + 1), PeerPod: string('b' - rune(i)), Leg: leg, LegIndex: p.legs[i][w], MTU: 1500, Datapath: datapath})
		}
		var err error
		p.must(p.own[i].Do(func() error {
			p.fabrics[i], err = wire.New(wire.Options{Lab: "lab", Pod: string('a' + rune(i)), Key: []byte("a key for tests"), Underlay: "c9s0", Device: p.device[i].FD(), Resolver: p})
			return err
		}))
		p.must(p.fabrics[i].Set(wires))
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := p.fabrics[i].Run(ctx); err != nil {
				b.Error(err)
			}
		}()
		b.Cleanup(func() {
			cancel()
			<-done
			p.fabrics[i].Close()
		})
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		wires := slices.Concat(p.fabrics[0].Status().Wires, p.fabrics[1].Status().Wires)
		if !slices.ContainsFunc(wires, func(w wire.WireStatus) bool { return !w.Up || w.Datapath != datapath }) {
			return p
		}
		if time.Now().After(end) {
			b.Fatalf("the wires are %+v", wires)
		}
	}
}

// rate sends bytes by TCP over the first wire for a time, and returns Gbit/s.
func (p *priced) rate(length time.Duration) float64 {
	var l net.Listener
	p.must(p.device[1].Do(func() (err error) {
		l, err = net.Listen("tcp", "10.0.1.2:0")
		return err
	}))
	defer l.Close()
	received := make(chan int64, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			received <- 0
			return
		}
		defer c.Close()
		n, _ := io.Copy(io.Discard, c)
		received <- n
	}()
	var c net.Conn
	p.must(p.device[0].Do(func() (err error) {
		c, err = net.Dial("tcp", l.Addr().String())
		return err
	}))
	began := time.Now()
	block := make([]byte, 256<<10)
	for time.Since(began) < length {
		if _, err := c.Write(block); err != nil {
			p.Fatal(err)
		}
	}
	c.Close()
	n := <-received
	return float64(n) * 8 / time.Since(began).Seconds() / 1e9
}

// roleOf is the environment variable with which the test binary is another process: one that
// captures the interface of that name, or readerRole. The files 3 and 4 of the former are the
// network namespaces of the sidecar and of the device.
const (
	roleOf     = "C9S_TEST_CAPTURE"
	readerRole = "read"
)

func init() {
	var err error
	switch role := os.Getenv(roleOf); role {
	case "":
		return
	case readerRole:
		err = readCapture()
	default:
		err = captureInterface(role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// captureInterface is the sidecar's subcommand capture.
func captureInterface(name string) error {
	own, err := nspace.Open(os.NewFile(3, "own"))
	if err != nil {
		return err
	}
	device, err := nspace.Open(os.NewFile(4, "device"))
	if err != nil {
		return err
	}
	s := &Session{Own: own, Device: device, Status: func(context.Context) (api.Status, error) {
		return api.Status{Pod: "a", Interfaces: []api.Interface{{Node: "R1", Name: name, Kind: "wire", State: api.StateMade, Linux: name, Leg: "leg" + name[3:]}}}, nil
	}}
	return s.Run(context.Background(), os.Stdin, os.Stdout)
}

// readCapture reads a stream, as c9s does. It prints a line when the capture has begun, and the
// counts in the end.
func readCapture() error {
	d := capture.NewDecoder(os.Stdin, 1)
	var last *capture.State
	for {
		r, err := d.Next()
		if err == io.EOF && last != nil {
			_, err = fmt.Println(last.Interfaces[0].Received, last.Interfaces[0].Dropped)
			return err
		}
		if err != nil {
			return err
		}
		if r.State != nil {
			if last == nil {
				fmt.Println("begun")
			}
			last = r.State
		}
	}
}

// captured runs something while an interface of the first Pod is captured by other processes, as
// in a lab, and returns how many frames were captured and how many dropped.
func (p *priced) captured(eth int, text string, snap int, during func()) (received, dropped uint64) {
	program, err := filter.Compile(text)
	p.must(err)
	name := fmt.Sprintf("eth%d", eth)
	request := capture.Request{Snap: snap, Interfaces: []capture.Interface{{Node: "R1", Name: name}}}
	for _, i := range program {
		request.Filter = append(request.Filter, capture.Instruction{uint32(i.Op), uint32(i.Jt), uint32(i.Jf), i.K})
	}
	line, err := json.Marshal(request)
	p.must(err)
	process := func(role string) *exec.Cmd {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env, cmd.Stderr = append(os.Environ(), roleOf+"="+role), os.Stderr
		return cmd
	}
	source, reader := process(name), process(readerRole)
	for _, space := range []*nspace.Namespace{p.own[0], p.device[0]} {
		fd, err := unix.Dup(space.FD())
		p.must(err)
		file := os.NewFile(uintptr(fd), "namespace")
		defer file.Close()
		source.ExtraFiles = append(source.ExtraFiles, file)
	}
	ask, err := source.StdinPipe()
	p.must(err)
	r, w, err := os.Pipe()
	p.must(err)
	source.Stdout, reader.Stdin = w, r
	out, err := reader.StdoutPipe()
	p.must(err)
	p.must(source.Start())
	p.must(reader.Start())
	w.Close()
	r.Close()
	_, err = ask.Write(append(line, '\n'))
	p.must(err)
	var word string
	_, err = fmt.Fscanln(out, &word)
	p.must(err)
	during()
	ask.Close()
	_, err = fmt.Fscanln(out, &received, &dropped)
	p.must(err)
	p.must(source.Wait())
	p.must(reader.Wait())
	return received, dropped
}

// BenchmarkPrice measures the rate of a link without a capture, while another link of the Pod is
// captured, and while it is captured itself, in turn. It prints the medians of the rates and of
// their ratios in each turn: a machine's speed changes from one turn to the next.
func BenchmarkPrice(b *testing.B) {
	for _, datapath := range []string{wire.DatapathUDP, wire.DatapathVXLAN} {
		b.Run(datapath, func(b *testing.B) {
			p := newPriced(b, datapath)
			const length, rounds = time.Second, 15
			type subject struct {
				name   string
				eth    int // 0 for none
				filter string
				snap   int
			}
			subjects := []subject{
				{"no capture", 0, "", 0}, {"another link is captured", 2, "", 0}, {"captured, nothing passes the filter", 1, "arp", 0},
				{"captured, the headers", 1, "", 128}, {"captured, all", 1, "", 0},
			}
			rates := map[string][]float64{}
			lost := map[string][2]uint64{}
			p.rate(length) // warm
			for range rounds * b.N {
				for _, s := range subjects {
					var rate float64
					if s.eth == 0 {
						rate = p.rate(length)
					} else {
						received, dropped := p.captured(s.eth, s.filter, s.snap, func() { rate = p.rate(length) })
						lost[s.name] = [2]uint64{lost[s.name][0] + received, lost[s.name][1] + dropped}
					}
					rates[s.name] = append(rates[s.name], rate)
				}
			}
			median := func(list []float64) float64 {
				slices.Sort(list)
				return list[len(list)/2]
			}
			ratio := func(name string) float64 {
				ratios := make([]float64, len(rates[name]))
				for i, rate := range rates[name] {
					ratios[i] = rate / rates[subjects[0].name][i]
				}
				return median(ratios)
			}
			ratios := map[string]float64{}
			for _, s := range subjects {
				ratios[s.name] = ratio(s.name)
			}
			var table strings.Builder
			fmt.Fprintf(&table, "%s:\n", datapath)
			for _, s := range subjects {
				fmt.Fprintf(&table, "%-38s %5.2f Gbit/s  %4.2f of the rate, %d frames, %d dropped\n", s.name, median(rates[s.name]), ratios[s.name], lost[s.name][0], lost[s.name][1])
			}
			fmt.Print(table.String())
			b.ReportMetric(ratios["another link is captured"], "another/none")
			b.ReportMetric(ratios["captured, all"], "captured/none")
		})
	}
}

// packets sends small datagrams over the first wire at a steady rate for a time, and returns how
// many were sent.
func (p *priced) packets(perSecond int, length time.Duration) (sent int) {
	var c net.Conn
	p.must(p.device[0].Do(func() (err error) {
		c, err = net.Dial("udp", "10.0.1.2:9") // the discard port
		return err
	}))
	defer c.Close()
	payload := make([]byte, 22) // a frame of 64 bytes, without its checksum
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		passed := min(time.Since(began), length)
		for due := int(passed.Seconds() * float64(perSecond)); sent < due; sent++ {
			_, _ = c.Write(payload) // nothing listens there, which a write may report
		}
		if passed == length {
			return sent
		}
	}
}

// BenchmarkSmallFrames captures 100,000 small frames a second for five seconds, and reports the
// percentage that the capture lost.
func BenchmarkSmallFrames(b *testing.B) {
	const perSecond, length = 100_000, 5 * time.Second
	for _, datapath := range []string{wire.DatapathUDP, wire.DatapathVXLAN} {
		b.Run(datapath, func(b *testing.B) {
			p := newPriced(b, datapath)
			var sent, received, dropped int
			for range b.N {
				r, d := p.captured(1, "udp dst port 9", 0, func() { sent += p.packets(perSecond, length) })
				received += int(r - d) // a dropped frame has passed the filter too
				dropped += int(d)
			}
			fmt.Printf("%s: %d frames sent, %d captured, %d dropped by the capture and counted\n", datapath, sent, received, dropped)
			b.ReportMetric(100*float64(sent-received)/float64(sent), "%lost")
			b.ReportMetric(float64(sent)/(float64(b.N)*length.Seconds()), "frames/s")
		})
	}
}
