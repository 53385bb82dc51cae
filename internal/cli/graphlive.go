//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/access/sshconfig"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/graph"
	"github.com/c9s-lab/c9s/pkg/graph/live"
	"github.com/c9s-lab/c9s/pkg/status"
)

type graphLiveFlags struct {
	targetFlags
	topo      *topoFlags
	live      bool
	namespace string
	port      uint16
	print     bool
}

func addLiveGraph(cmd *cobra.Command, world IO, topo *topoFlags) liveGraph {
	f := &graphLiveFlags{topo: topo}
	f.targetFlags.add(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.live, "live", false, "draw the running lab")
	fs.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the running lab (default: find it)")
	fs.Uint16Var(&f.port, "port", 0, "loopback port of the page of --live (default: a free one)")
	fs.BoolVar(&f.print, "print", false, "print the URL of the page of --live and open no browser")
	cmd.Example += `
  c9s graph --live
  c9s graph mylab --live -o html > now.html`
	return func(ctx context.Context, args []string, draw graph.Writer) (bool, error) {
		if !f.live {
			return false, nil
		}
		return true, f.run(ctx, world, args, draw)
	}
}

// liveGraphSource reads the graph of a lab again and again.
type liveGraphSource struct {
	client   *cluster.Client
	found    cluster.Found
	nodes    map[string]cluster.Node
	labels   map[string]map[string]string
	commands live.Commands
	meter    live.Meter
	rates    live.Rates
	// last is when the Pods were asked last.
	last time.Time
}

func (f *graphLiveFlags) run(ctx context.Context, world IO, args []string, draw graph.Writer) error {
	ref := labRef{topoFlags: *f.topo, targetFlags: f.targetFlags, namespace: f.namespace}
	client, found, err := ref.find(ctx, world, args)
	if err != nil {
		return err
	}
	nodes, err := client.Nodes(ctx, found)
	if err != nil {
		return fail(err)
	}
	s := &liveGraphSource{client: client, found: found, nodes: map[string]cluster.Node{}, labels: map[string]map[string]string{}}
	for _, n := range nodes {
		s.nodes[n.Name], s.labels[n.Name] = n, n.Labels
	}
	words := labWords{f.targetFlags, found}
	s.commands = live.Commands{Node: func(n status.Node) []graph.Command { return words.node(s.nodes[n.Name]) }, Link: words.link}
	if draw == nil {
		return f.serve(ctx, world, s)
	}
	if _, err = s.read(ctx, true); err != nil {
		return fail(err)
	}
	select { // a rate is the difference of two answers
	case <-time.After(time.Second):
	case <-ctx.Done():
		return exitCode(exitInterrupted)
	}
	g, err := s.read(ctx, true)
	if err != nil {
		return fail(err)
	}
	return fail(draw(show.Document(world.Out), g))
}

// read returns the graph now. With fresh set, it asks the Pods, which have the counters.
func (s *liveGraphSource) read(ctx context.Context, fresh bool) (*graph.Graph, error) {
	now := time.Now()
	lab, err := s.client.Status(ctx, s.found, fresh)
	if err != nil {
		return nil, err
	}
	if fresh && lab.Source == "pods" {
		s.rates, s.last = s.meter.Read(lab.Links, now), now
	}
	return live.Graph(lab, s.labels, s.rates, s.commands, now), nil
}

// interval is how often the Pods of a lab are asked. Each one is a request to the API server.
func (s *liveGraphSource) interval() time.Duration {
	return max(2*time.Second, time.Duration(len(s.nodes))*25*time.Millisecond)
}

func (f *graphLiveFlags) serve(ctx context.Context, world IO, s *liveGraphSource) error {
	g, err := s.read(ctx, true)
	if err != nil {
		return fail(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(f.port))))
	if err != nil {
		return fail(err)
	}
	page := live.NewPage(g)
	server := &http.Server{
		Handler: page.Handler(), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	url := "http://" + l.Addr().String() + "/"
	fmt.Fprintln(world.Out, url)
	if !f.print {
		if err := browse(envValue(world, "BROWSER"), url); err != nil {
			fmt.Fprintf(world.Err, "warning: no browser was opened: %v\n", err)
		}
	}
	fmt.Fprintln(world.Err, "press Ctrl-C to end it")
	go s.follow(ctx, page)
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fail(err)
	}
	return exitCode(exitInterrupted)
}

// follow keeps a page current: it asks the Pods for the rates at intervals, and in between
// the controller, as soon as that has news.
func (s *liveGraphSource) follow(ctx context.Context, page *live.Page) {
	tag := ""
	for ctx.Err() == nil {
		until := s.last.Add(s.interval())
		wait, cancel := context.WithDeadline(ctx, until)
		news, err := s.client.News(wait, s.found, tag)
		if err == nil {
			tag = news
		} else {
			<-wait.Done() // also where there is no controller
		}
		cancel()
		fresh := !time.Now().Before(until)
		g, err := s.read(ctx, fresh)
		if fresh {
			s.last = time.Now()
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			page.Trouble(err.Error())
		default:
			page.Set(g)
		}
	}
}

// labWords writes command lines for a lab.
type labWords struct {
	target targetFlags
	found  cluster.Found
}

// command is a command line of c9s: its first words, then where the lab is.
func (w labWords) command(words ...string) string {
	words = append(append([]string{"c9s"}, words...), "--lab", w.found.Name, "-n", w.found.Namespace)
	if w.target.context != "" {
		words = append(words, "--context", w.target.context)
	}
	if w.target.kubeconfig != "" {
		words = append(words, "--kubeconfig", w.target.kubeconfig)
	}
	for i, word := range words {
		words[i] = sshconfig.Quote(word)
	}
	return strings.Join(words, " ")
}

func (w labWords) node(n cluster.Node) []graph.Command {
	if len(n.Containers) == 0 {
		return nil
	}
	var out []graph.Command
	add := func(label string, words ...string) {
		out = append(out, graph.Command{Label: label, Line: w.command(words...)})
	}
	for _, p := range kindOf(n).Ports {
		if p.Port == 22 {
			add("Log in", "ssh", n.Name)
			break
		}
	}
	add("Shell", "shell", n.Name)
	add("Log", "logs", n.Name, "--follow")
	return out
}

func (w labWords) link(k status.Link) []graph.Command {
	a, b := k.A.Node+":"+k.A.Interface, k.B.Node+":"+k.B.Interface
	if k.B.Node == "" {
		return nil
	}
	return []graph.Command{
		{Label: "Capture both ends", Line: w.command("capture", "--link", a, b, "--wireshark")},
		{Label: "Impair what " + k.A.Node + " sends", Line: w.command("link", "set", a, "--delay", "50ms", "--loss", "1")},
		{Label: "Restore it", Line: w.command("link", "reset", a)},
	}
}
