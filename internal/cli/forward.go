//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/internal/markers"
	"github.com/c9s-lab/c9s/pkg/access"
	"github.com/c9s-lab/c9s/pkg/access/forward"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/tunnel"
)

type forwardFlags struct {
	nodeRef
	address   string
	output    string
	hosts     bool
	hostsFile string
}

func newForward(world IO) *cobra.Command {
	f := &forwardFlags{}
	cmd := &cobra.Command{
		Use:   "forward [[LOCAL=]NODE[:PORT[/udp]]...]",
		Short: "Forward ports of this machine to nodes",
		Long: `Forward listens on loopback addresses of this machine and forwards connections and UDP
datagrams to nodes, until you press Ctrl-C. Without a port, these are the ports of the
node's kind; without a node, those of all nodes. On Linux, each node has its own address
in 127.0.0.0/8, and its ports keep their numbers if the system allows it; a port below
1024 that is reserved for root becomes PORT+10000. On other systems, the nodes share
127.0.0.1 and each port gets a free number. LOCAL= chooses the local port. With --hosts,
the nodes' names resolve to these addresses (Linux, root).`,
		Example: `  c9s forward
  c9s forward R1:161/udp srl1:57400
  c9s forward 8080=R1:80
  c9s forward R1 --address 127.0.0.1 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args)
		},
	}
	f.add(cmd, world, "t")
	fs := cmd.Flags()
	fs.StringVar(&f.address, "address", "", "address of the nodes (default: the management address)")
	fs.StringVarP(&f.output, "output", "o", "", "json prints the open ports as JSON")
	fs.BoolVar(&f.hosts, "hosts", false, "write the nodes' names to the hosts file, until the end")
	fs.StringVar(&f.hostsFile, "hosts-file", "/etc/hosts", "file that --hosts writes to")
	_ = fs.MarkHidden("hosts-file")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// wanted is a port that is to be forwarded.
type wanted struct {
	node    cluster.Node
	network string
	port    uint16
	local   uint16 // 0 for none in particular
}

// forwarded is a port that is forwarded.
type forwarded struct {
	Node    string         `json:"node"`
	Network string         `json:"network"`
	Port    uint16         `json:"port"`
	Local   netip.AddrPort `json:"local"`

	listener net.Listener
	socket   net.PacketConn
	pod      string
	open     *atomic.Int64
}

// untilHangup returns a context that also ends when the terminal is closed, unless that is
// ignored, as by nohup. Other commands end at once then, as ssh expects of its ProxyCommand.
func untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

func (f *forwardFlags) run(ctx context.Context, world IO, args []string) error {
	ctx, stop := untilHangup(ctx)
	defer stop()
	address, err := parseAddress(f.address)
	switch {
	case err != nil:
		return err
	case f.output != "" && f.output != "json":
		return fmt.Errorf("--output %q: use json", f.output)
	case f.hosts && runtime.GOOS != "linux":
		return errors.New("--hosts needs an address for each node, which only Linux has; use the table's ports")
	}
	client, found, nodes, err := f.find(ctx, world)
	if err != nil {
		return err
	}
	list, err := wantedPorts(nodes, args)
	if err != nil {
		return fail(err)
	}
	ports, err := listenAll(ctx, list, loopbacks(found, nodes))
	defer func() {
		for _, p := range ports {
			p.close()
		}
	}()
	if err != nil {
		return fail(err)
	}
	if f.hosts {
		undo, err := writeHosts(f.hostsFile, found, ports)
		if err != nil {
			return fail(err)
		}
		defer undo()
	}
	lab := tunnels(client, found.Namespace)
	defer lab.Close()
	return f.serve(ctx, world, lab, ports, address)
}

// serve prints the table and forwards until ctx is done.
func (f *forwardFlags) serve(ctx context.Context, world IO, lab *access.Lab, ports []*forwarded, address netip.Addr) error {
	b := &board{world: world, ports: ports, changed: make(chan struct{}, 1)}
	b.repaint = f.output == "" && show.Terminal(world.Out) && os.Getenv("TERM") != "dumb" && len(ports) <= boardLines
	var group sync.WaitGroup
	for _, p := range ports {
		dial := func(ctx context.Context, first []byte) (net.Conn, error) {
			return dialNodeEarly(ctx, lab, p.pod, tunnel.Target{Network: p.Network, Addr: address, Port: p.Port}, first)
		}
		events := forward.Events{
			Open:   func(change int) { b.count(p, change) },
			Failed: func(err error) { b.failed(p, err) },
		}
		group.Go(func() {
			if p.socket != nil {
				forward.UDP(ctx, p.socket, dial, events)
			} else {
				forward.TCP(ctx, p.listener, dial, events)
			}
		})
	}
	defer group.Wait()
	if f.output == "json" {
		if err := printJSON(world.Out, ports); err != nil {
			return fail(err)
		}
	} else {
		b.paint()
	}
	b.watch(ctx)
	return exitCode(exitInterrupted)
}

// wantedPorts reads the arguments.
func wantedPorts(nodes []cluster.Node, args []string) ([]wanted, error) {
	var out []wanted
	if len(args) == 0 {
		for _, n := range nodes {
			if len(n.Containers) > 0 && !n.Stopped {
				out = append(out, kindPorts(n)...)
			}
		}
		return out, nil
	}
	for _, arg := range args {
		local, rest, has := strings.Cut(arg, "=")
		if !has {
			local, rest = "", arg
		}
		rest, network := cutProtocol(rest)
		if _, after, has := strings.Cut(rest, ":"); has && strings.Contains(after, "/") {
			return nil, fmt.Errorf("%q: the protocol is tcp or udp", arg)
		}
		name, port, err := splitPort(rest)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", arg, err)
		}
		chosen, err := cluster.Select(nodes, []string{name})
		if err == nil {
			err = notStopped(chosen[0])
		}
		if err != nil {
			return nil, err
		}
		w := wanted{node: chosen[0], network: network, port: port}
		switch {
		case port == 0 && local != "":
			return nil, fmt.Errorf("%q: give the node's port too, as in 8080=%s:80", arg, name)
		case port == 0:
			out = append(out, kindPorts(chosen[0])...)
			continue
		case local != "":
			if w.local, err = parsePort(local); err != nil {
				return nil, fmt.Errorf("%q: %w", arg, err)
			}
		}
		out = append(out, w)
	}
	return out, nil
}

// cutProtocol takes the protocol from the end of NODE:PORT/udp. NODE may have a "/" too: a card
// of a chassis.
func cutProtocol(text string) (rest, network string) {
	for _, network := range []string{tunnel.TCP, tunnel.UDP} {
		if rest, found := strings.CutSuffix(text, "/"+network); found {
			return rest, network
		}
	}
	return text, tunnel.TCP
}

// kindPorts are the ports by which nodes of a kind are managed.
func kindPorts(n cluster.Node) []wanted {
	var out []wanted
	for _, p := range kindOf(n).Ports {
		network := tunnel.TCP
		if strings.EqualFold(p.Protocol, tunnel.UDP) {
			network = tunnel.UDP
		}
		out = append(out, wanted{node: n, network: network, port: uint16(p.Port)})
	}
	if len(out) == 0 {
		out = []wanted{{node: n, network: tunnel.TCP, port: 22}}
	}
	return out
}

// loopbacks gives each node of a lab its loopback address: always the same one as long as the
// lab has the same nodes. Labs differ in the second byte, mostly.
func loopbacks(lab cluster.Found, nodes []cluster.Node) map[string]netip.Addr {
	out := map[string]netip.Addr{}
	h := fnv.New32a()
	_, _ = h.Write([]byte(lab.Namespace + "/" + lab.Name))
	second := byte(20 + h.Sum32()%200)
	for i, n := range nodes {
		out[n.Name] = netip.AddrFrom4([4]byte{127, second, byte(i / 250), byte(i%250 + 1)})
		if runtime.GOOS != "linux" { // the loopback interface has one address
			out[n.Name] = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
	}
	return out
}

// privileged is where the ports end that a system may keep for root, and above is what is
// added to one of them.
const (
	privileged = 1024
	above      = 10000
)

// listenAll opens the local ports. The ones that were opened are returned with an error too.
func listenAll(ctx context.Context, list []wanted, addresses map[string]netip.Addr) ([]*forwarded, error) {
	var out []*forwarded
	for _, w := range list {
		o := &forwarded{Node: w.node.Name, Network: w.network, Port: w.port, pod: w.node.Deployment, open: new(atomic.Int64)}
		at := addresses[w.node.Name]
		var err error
		for _, port := range localPorts(w) {
			if err = o.listen(ctx, netip.AddrPortFrom(at, port)); err == nil {
				break
			}
		}
		if err != nil {
			return out, fmt.Errorf("forward %s:%d/%s: %w", w.node.Name, w.port, w.network, err)
		}
		out = append(out, o)
	}
	return out, nil
}

// localPorts are the local ports to try, in this order; 0 is any.
func localPorts(w wanted) []uint16 {
	switch {
	case w.local != 0:
		return []uint16{w.local}
	case runtime.GOOS == "linux" && w.port < privileged:
		return []uint16{w.port, w.port + above, 0}
	case runtime.GOOS == "linux":
		return []uint16{w.port, 0}
	}
	return []uint16{0}
}

func (o *forwarded) listen(ctx context.Context, at netip.AddrPort) (err error) {
	var lc net.ListenConfig
	if o.Network == tunnel.UDP {
		if o.socket, err = lc.ListenPacket(ctx, "udp", at.String()); err == nil {
			o.Local = o.socket.LocalAddr().(*net.UDPAddr).AddrPort()
		}
		return err
	}
	if o.listener, err = lc.Listen(ctx, "tcp", at.String()); err == nil {
		o.Local = o.listener.Addr().(*net.TCPAddr).AddrPort()
	}
	return err
}

func (o *forwarded) close() {
	if o.listener != nil {
		o.listener.Close()
	}
	if o.socket != nil {
		o.socket.Close()
	}
}

// hostsBlock names the block of one process in the hosts file: others may forward the same lab.
func hostsBlock(namespace string, process int) string {
	return fmt.Sprintf("c9s: forward of namespace %s, process %d", namespace, process)
}

// withoutEnded takes out the blocks of processes that were killed.
func withoutEnded(text string, running func(process int) bool) string {
	for line := range strings.Lines(text) {
		var namespace string
		var process int
		name, _ := strings.CutPrefix(strings.TrimSpace(line), "# BEGIN ")
		if n, _ := fmt.Sscanf(strings.Replace(name, ",", " ,", 1), "c9s: forward of namespace %s , process %d", &namespace, &process); n != 2 || running(process) {
			continue
		}
		text = markers.Set(text, hostsBlock(namespace, process), "", false)
	}
	return text
}

// running reports whether there is a process of that number.
func running(process int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", process))
	return err == nil
}

// writeHosts writes the nodes' names to the hosts file, and returns what takes them out again.
func writeHosts(file string, lab cluster.Found, ports []*forwarded) (undo func(), err error) {
	var lines strings.Builder
	var done []string
	for _, p := range ports {
		if slices.Contains(done, p.Node) {
			continue
		}
		done = append(done, p.Node)
		if names := localNames([]string{p.Node}, lab.Name); len(names) > 0 {
			fmt.Fprintf(&lines, "%s %s\n", p.Local.Addr(), strings.Join(names, " "))
		}
	}
	name := hostsBlock(lab.Namespace, os.Getpid())
	write := func(body string) error {
		return markers.Update(file, func(text string) string {
			return markers.Set(withoutEnded(text, running), name, body, false)
		})
	}
	if err := write(lines.String()); err != nil {
		return nil, fmt.Errorf("write the nodes' names: %w", err)
	}
	return func() { _ = write("") }, nil
}

// board is the table of what is forwarded. On a terminal it is kept current.
type board struct {
	world   IO
	ports   []*forwarded
	repaint bool
	changed chan struct{}

	mu      sync.Mutex
	painted bool // the table is the last thing on the terminal
}

// boardLines is the longest table that is repainted: a longer one is not whole on a terminal.
const boardLines = 20

// repaintEvery is how often the table is painted at most.
const repaintEvery = 200 * time.Millisecond

func (b *board) count(p *forwarded, change int) {
	p.open.Add(int64(change))
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

func (b *board) failed(p *forwarded, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.painted = false
	fmt.Fprintf(b.world.Err, "%s:%d/%s: %v\n", p.Node, p.Port, p.Network, err)
}

// watch paints the table after changes until ctx is done.
func (b *board) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.changed:
			if b.repaint {
				b.paint()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(repaintEvery):
		}
	}
}

func (b *board) paint() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.painted && b.repaint {
		fmt.Fprintf(show.Raw(b.world.Out), "\x1b[%dA\x1b[J", len(b.ports)+1) // up, and clear what is below
	}
	b.painted = true
	t := show.NewTable(printers.GetNewTabWriter(b.world.Out))
	t.Row("NODE", "PORT", "LOCAL ADDRESS", "CONNECTIONS")
	for _, p := range b.ports {
		t.Row(p.Node, fmt.Sprintf("%d/%s", p.Port, p.Network), p.Local.String(), fmt.Sprint(p.open.Load()))
	}
	_ = t.Flush()
}
