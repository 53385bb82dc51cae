//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/access"
	"github.com/c9s-lab/c9s/pkg/capture"
	"github.com/c9s-lab/c9s/pkg/capture/filter"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
)

type captureFlags struct {
	nodeRef
	link, all  bool
	filter     string
	write      string
	wireshark  bool
	print      bool
	output     string
	snap       int
	count      uint64
	length     time.Duration
	rotation   rotation
	install    bool
	installDir string
}

func newCapture(world IO) *cobra.Command {
	f := &captureFlags{}
	cmd := &cobra.Command{
		Use:   "capture NODE[:INTERFACE]... | --link NODE[:INTERFACE] [NODE[:INTERFACE]] | --all",
		Short: "Capture the frames of links, at one end or both",
		Long: `Capture records the frames of interfaces until you press Ctrl-C. The sidecars capture on the
links, so images need no tcpdump, and one capture can have interfaces of several nodes. The
file (pcapng) has the name of each interface, the direction of each frame and the number of
dropped frames. Frames are sorted by time. c9s aligns the clocks of different workers with
the heartbeats of the wire, and a comment of each interface gives the error.

--link captures both ends of the links between two nodes, or of the link of one interface.
The filter is in tcpdump's language and runs in the kernel of the workers; the guide
docs/guides/capture.md lists the part of the language that c9s supports.`,
		Example: `  c9s capture R1:eth1
  c9s capture --link R1 R2 --filter 'tcp port 179' -w bgp.pcapng
  c9s capture R1:eth1 R2:eth2 --wireshark
  c9s capture --all --filter ospf --for 30s -w ospf.pcapng
  c9s capture --all -w lab.pcapng --file-size 100M --files 5
  c9s capture --install-extcap
  c9s capture srl1:ethernet-1/1 -w - | tshark -r -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.install {
				return fail(installExtcap(world, f.installDir))
			}
			return f.run(cmd.Context(), world, args)
		},
	}
	f.add(cmd, world, "t")
	cmd.ValidArgsFunction = f.completeEnds(world)
	fs := cmd.Flags()
	fs.BoolVar(&f.link, "link", false, "capture both ends of links")
	fs.BoolVar(&f.all, "all", false, "capture every link of the lab, at both ends")
	fs.StringVarP(&f.filter, "filter", "f", "", "filter in tcpdump's language")
	fs.StringVarP(&f.write, "write", "w", "", "write pcapng to a file, or to standard output (-)")
	fs.BoolVar(&f.wireshark, "wireshark", false, "show the frames in Wireshark")
	fs.BoolVar(&f.print, "print", false, "print a line for each frame (the default without -w and --wireshark)")
	fs.StringVarP(&f.output, "output", "o", "", "json prints each frame as a line of JSON")
	fs.IntVarP(&f.snap, "snap", "s", 0, "number of bytes to keep of each frame (default: all)")
	fs.Uint64VarP(&f.count, "count", "c", 0, "stop after this many frames")
	fs.DurationVar(&f.length, "for", 0, "stop after this time")
	f.rotation.add(fs)
	fs.BoolVar(&f.install, "install-extcap", false, "let Wireshark list labs and links among its interfaces")
	fs.StringVar(&f.installDir, "extcap-dir", "", "folder for --install-extcap (default: where Wireshark looks)")
	_ = cmd.MarkFlagDirname("extcap-dir")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("write", "pcapng")
	return cmd
}

// completeEnds completes NODE:INTERFACE of the running lab and, after the name of a node, its
// aliases.
func (f *nodeRef) completeEnds(world IO) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		quiet := world
		quiet.Err = discard{}
		client, found, nodes, err := f.find(ctx, quiet)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		links, err := client.Topology(ctx, found)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, end := range endsOf(links) {
			names = append(names, end.Node+":"+end.Interface)
		}
		if node, _, ok := strings.Cut(word, ":"); ok {
			names = append(names, aliasesOf(ctx, client, found, nodes, node)...)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// aliasesOf returns the aliases of a node's interfaces, as NODE:ALIAS.
func aliasesOf(ctx context.Context, client *cluster.Client, found cluster.Found, nodes []cluster.Node, node string) (names []string) {
	i := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Name == node })
	if i < 0 {
		return nil
	}
	links, err := client.Links(ctx, found, nodes[i].Deployment)
	if err != nil {
		return nil
	}
	for _, in := range links.Interfaces {
		if in.Node == node && in.Alias != "" {
			names = append(names, node+":"+in.Alias)
		}
	}
	return names
}

// endsOf returns the ends of links, those of a link one after the other.
func endsOf(links []contract.TopologyLink) []contract.TopologyEnd {
	var out []contract.TopologyEnd
	for _, l := range links {
		out = append(out, l.A)
		if l.B != nil {
			out = append(out, *l.B)
		}
	}
	return out
}

func (f *captureFlags) check(world IO, args []string) error {
	switch {
	case f.output != "" && f.output != "json":
		return fmt.Errorf("--output %q: use json", f.output)
	case f.all && (f.link || len(args) > 0):
		return errors.New("--all is the whole lab: omit the nodes and --link")
	case f.link && (len(args) == 0 || len(args) > 2):
		return errors.New("--link needs two nodes, or one interface as NODE:INTERFACE")
	case f.link && len(args) == 1 && !strings.Contains(args[0], ":"):
		return errors.New("--link needs a second node, or an interface as NODE:INTERFACE")
	case !f.all && len(args) == 0:
		return errors.New("name interfaces as NODE:INTERFACE, or use --link or --all")
	case f.snap < 0:
		return errors.New("--snap must not be negative")
	case f.write == "-" && (f.print || f.output != ""):
		return errors.New("standard output cannot have both the file and the lines: write to a file")
	case f.write == "-" && isTerminal(world.Out):
		return errors.New("the file is not for a terminal: redirect standard output, or use -w FILE")
	}
	return f.rotation.check(f.write, f.wireshark)
}

func isTerminal(w io.Writer) bool {
	file, ok := show.File(w)
	return ok && term.IsTerminal(int(file.Fd()))
}

func (f *captureFlags) run(ctx context.Context, world IO, args []string) error {
	if err := f.check(world, args); err != nil {
		return err
	}
	program, err := filter.Compile(f.filter)
	if err != nil {
		return err
	}
	client, found, nodes, err := f.find(ctx, world)
	if err != nil {
		return err
	}
	ends, err := f.ends(ctx, client, found, nodes, args)
	if err != nil {
		return fail(err)
	}
	request := capture.Request{Snap: f.snap}
	for _, i := range program {
		request.Filter = append(request.Filter, capture.Instruction{uint32(i.Op), uint32(i.Jt), uint32(i.Jf), i.K})
	}
	c := newCapturing(func(ctx context.Context, pod string, in io.Reader, out, errs io.Writer) error {
		return client.Capture(ctx, found.Namespace, pod, in, out, errs)
	}, request, byPod(nodes, ends))
	c.warn = func(text string) { fmt.Fprintln(world.Err, text) }
	close, err := f.outputs(world, c)
	if err != nil {
		return fail(err)
	}
	if f.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.length)
		defer cancel()
	}
	fmt.Fprintf(world.Err, "capturing %s; press Ctrl-C to end it\n", diag.Count(len(ends), "interface"))
	err = c.run(ctx)
	err = errors.Join(err, close())
	c.summary(world.Err)
	return fail(err)
}

// ends returns the interfaces to capture.
func (f *captureFlags) ends(ctx context.Context, client *cluster.Client, found cluster.Found, nodes []cluster.Node, args []string) ([]capture.Interface, error) {
	links, err := client.Topology(ctx, found)
	if err != nil {
		return nil, err
	}
	if f.all {
		return endInterfaces(endsOf(links)), nil
	}
	var wanted []capture.Interface // with Name "" for all of the node
	for _, arg := range args {
		name, iface, _ := strings.Cut(arg, ":")
		chosen, err := cluster.Select(nodes, []string{name})
		if err != nil {
			return nil, err
		}
		if iface != "" {
			doc, err := client.Links(ctx, found, chosen[0].Deployment)
			if err != nil {
				return nil, err
			}
			i, err := cluster.FindInterface(doc, chosen[0].Name, iface)
			if err != nil {
				return nil, err
			}
			iface = doc.Interfaces[i].Name
		}
		wanted = append(wanted, capture.Interface{Node: chosen[0].Name, Name: iface})
	}
	if f.link {
		return linkEnds(links, wanted)
	}
	var out []capture.Interface
	for _, w := range wanted {
		of := slices.DeleteFunc(endInterfaces(endsOf(links)), func(i capture.Interface) bool { return !endMatches(w, i) })
		if len(of) == 0 && w.Name != "" {
			of = []capture.Interface{w} // a dummy, of which the list of links may say nothing
		}
		if len(of) == 0 {
			return nil, fmt.Errorf("node %s has no links", w.Node)
		}
		out = append(out, of...)
	}
	return uniqueEnds(out), nil
}

func endInterfaces(ends []contract.TopologyEnd) []capture.Interface {
	out := make([]capture.Interface, len(ends))
	for i, e := range ends {
		out[i] = capture.Interface{Node: e.Node, Name: e.Interface}
	}
	return out
}

func uniqueEnds(list []capture.Interface) (out []capture.Interface) {
	for _, i := range list {
		if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

func endMatches(w, i capture.Interface) bool {
	return w.Node == i.Node && (w.Name == "" || w.Name == i.Name)
}

// linkEnds returns both ends of the links that lead from one of the wanted ends to the other, or
// of the link of one end.
func linkEnds(links []contract.TopologyLink, wanted []capture.Interface) ([]capture.Interface, error) {
	var out []capture.Interface
	for _, l := range links {
		if l.B == nil {
			continue
		}
		ends := endInterfaces([]contract.TopologyEnd{l.A, *l.B})
		a, b := wanted[0], wanted[len(wanted)-1]
		if len(wanted) == 1 && (endMatches(a, ends[0]) || endMatches(a, ends[1])) ||
			len(wanted) == 2 && (endMatches(a, ends[0]) && endMatches(b, ends[1]) || endMatches(a, ends[1]) && endMatches(b, ends[0])) {
			out = append(out, ends...)
		}
	}
	if len(out) == 0 && len(wanted) == 1 {
		return nil, fmt.Errorf("%s does not lead to a node of the lab", wanted[0])
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no link leads from %s to %s", endLabel(wanted[0]), endLabel(wanted[1]))
	}
	return uniqueEnds(out), nil
}

func endLabel(i capture.Interface) string { return strings.TrimSuffix(i.String(), ":") }

// byPod groups interfaces by the Deployments of their nodes.
func byPod(nodes []cluster.Node, ends []capture.Interface) map[string][]capture.Interface {
	of := map[string]string{}
	for _, n := range nodes {
		of[n.Name] = n.Deployment
	}
	out := map[string][]capture.Interface{}
	for _, e := range ends {
		out[of[e.Node]] = append(out[of[e.Node]], e)
	}
	return out
}

// outputs opens what the flags ask for. close ends it.
func (f *captureFlags) outputs(world IO, c *capturing) (close func() error, err error) {
	c.count = f.count
	if f.print || f.output != "" || f.write == "" && !f.wireshark {
		c.line = func(d capture.Described, frame *capture.Frame) error { return printFrame(world, f.output, d, frame) }
	}
	var writers []io.Writer
	var closers []func() error
	switch {
	case f.write == "":
	case f.rotation.wanted():
		c.rotate = &rotating{rotation: f.rotation, name: f.write, filter: f.filter, now: time.Now}
		return c.rotate.close, c.nextFile()
	case f.write == "-":
		writers = append(writers, show.Raw(world.Out))
	default:
		file, err := createOutput(f.write)
		if err != nil {
			return nil, err
		}
		writers, closers = append(writers, file), append(closers, file.Close)
	}
	if f.wireshark {
		pipe, end, err := startWireshark(c.stop)
		if err != nil {
			return nil, err
		}
		writers, closers = append(writers, pipe), append(closers, end)
	}
	if len(writers) > 0 {
		c.file = capture.NewFile(io.MultiWriter(writers...), f.filter)
	}
	return func() error {
		var errs []error
		for _, end := range closers {
			errs = append(errs, end())
		}
		return errors.Join(errs...)
	}, nil
}

// frameLine is a frame of -o json.
type frameLine struct {
	Time      time.Time `json:"time"`
	Interface string    `json:"interface"`
	Peer      string    `json:"peer,omitempty"`
	Direction string    `json:"direction"`
	Length    int       `json:"length"`
	Summary   string    `json:"summary"`
}

func printFrame(world IO, output string, d capture.Described, frame *capture.Frame) error {
	if output == "" {
		_, err := fmt.Fprintln(world.Out, capture.Line(d.String(), frame))
		return err
	}
	direction := "in"
	if frame.Direction == capture.Out {
		direction = "out"
	}
	return printJSONLine(world.Out, frameLine{time.Unix(0, frame.Time).UTC(), d.String(), d.Peer, direction, frame.Length, capture.Summary(frame.Data)})
}

// startWireshark starts Wireshark on a pipe. ended is called when its user has closed it.
func startWireshark(ended func()) (pipe io.Writer, end func() error, err error) {
	program, err := exec.LookPath("wireshark")
	for _, place := range []string{"/Applications/Wireshark.app/Contents/MacOS/Wireshark", "/mnt/c/Program Files/Wireshark/wireshark.exe"} {
		if err != nil {
			program, err = exec.LookPath(place)
		}
	}
	if err != nil {
		return nil, nil, errors.New("wireshark is not installed: write a file with -w, or a pipe with -w -")
	}
	cmd := exec.Command(program, "-k", "-i", "-")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
		ended()
	}()
	return in, func() error {
		in.Close()
		<-done // it stays open for its user
		return nil
	}, nil
}

// capturing is a capture that runs.
type capturing struct {
	start   access.Start
	request capture.Request
	pods    []string
	of      map[string][]capture.Interface // by Pod

	file *capture.File
	// rotate is nil for one file.
	rotate *rotating
	line   func(capture.Described, *capture.Frame) error
	warn   func(string)
	count  uint64
	stop   func()
	ended  chan struct{}

	records chan podRecord
	merger  capture.Merger
	states  map[string]capture.State
	shifts  map[string]capture.Shift
	totals  map[capture.Interface]capture.InterfaceState
	// past are the counts of the sidecars before the present ones.
	past   map[capture.Interface]capture.InterfaceState
	warned map[string]bool
	frames uint64
	failed error
}

// podRecord is a record of a Pod's stream. One without a record begins or ends the stream.
type podRecord struct {
	pod int
	capture.Record
	begins bool
	err    error
}

func newCapturing(start access.Start, request capture.Request, of map[string][]capture.Interface) *capturing {
	c := &capturing{
		start: start, request: request, of: of, records: make(chan podRecord, 4096), ended: make(chan struct{}),
		states: map[string]capture.State{}, shifts: map[string]capture.Shift{}, warned: map[string]bool{},
		totals: map[capture.Interface]capture.InterfaceState{}, past: map[capture.Interface]capture.InterfaceState{},
	}
	for pod := range of {
		c.pods = append(c.pods, pod)
	}
	slices.Sort(c.pods)
	c.stop = sync.OnceFunc(func() { close(c.ended) })
	c.merger.Emit = c.emit
	return c
}

// createOutput creates a file, or opens what is there already and is no file, such as a FIFO: only
// for writing, so that it ends when its reader does.
func createOutput(name string) (*os.File, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return os.OpenFile(name, os.O_WRONLY, 0)
	}
	return os.Create(name)
}
