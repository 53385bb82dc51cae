//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/capture/filter"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// extcapName is the name under which c9s is an extcap: a program that Wireshark asks for
// interfaces and for their frames.
const extcapName = "c9s-extcap"

// An interface of the extcap is a lab, or an end of a link, as scheme:NAMESPACE/LAB[/NODE:INTERFACE].
// All links of a lab are captured at both ends, as is the link of an end.
const extcapScheme = "c9s:"

// extcapFlags are the arguments of Wireshark's protocol.
type extcapFlags struct {
	targetFlags
	interfaces, dlts, config, capture bool
	version, iface, fifo, filter      string
}

func newExtcap(world IO) *cobra.Command {
	f := &extcapFlags{}
	cmd := &cobra.Command{
		Use:     "extcap",
		Short:   "Answer Wireshark, which calls c9s under the name of " + extcapName,
		Long:    "Extcap speaks Wireshark's extcap protocol. 'c9s capture --install-extcap' installs it.",
		Example: "  c9s-extcap --extcap-interfaces",
		Args:    cobra.NoArgs,
		Hidden:  true,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), world) },
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.interfaces, "extcap-interfaces", false, "list the interfaces")
	fs.BoolVar(&f.dlts, "extcap-dlts", false, "list the link types of an interface")
	fs.BoolVar(&f.config, "extcap-config", false, "list the options of an interface")
	fs.BoolVar(&f.capture, "capture", false, "capture")
	fs.StringVar(&f.version, "extcap-version", "", "version of Wireshark")
	fs.StringVar(&f.iface, "extcap-interface", "", "interface")
	fs.StringVar(&f.fifo, "fifo", "", "pipe for the frames")
	fs.StringVar(&f.filter, "extcap-capture-filter", "", "filter; without --capture, check it")
	return cmd
}

func (f *extcapFlags) run(ctx context.Context, world IO) error {
	switch {
	case f.interfaces:
		return fail(f.list(ctx, world))
	case f.dlts:
		fmt.Fprintln(world.Out, "dlt {number=1}{name=EN10MB}{display=Ethernet}")
		return nil
	case f.config: // there are none
		return nil
	case f.capture:
		return f.frames(ctx, world)
	case f.filter != "":
		if _, err := filter.Compile(f.filter); err != nil {
			fmt.Fprintln(world.Out, err)
		}
		return nil
	}
	return errors.New("this is for Wireshark: use c9s capture")
}

// extcapTime is how long Wireshark waits for the list of interfaces, at its start.
const extcapTime = 5 * time.Second

// list prints the labs and their links. Without a cluster, it prints none: that is no reason for
// Wireshark to complain at each start.
func (f *extcapFlags) list(ctx context.Context, world IO) error {
	fmt.Fprintf(world.Out, "extcap {version=%s}{display=c9s labs}\n", extcapText(Version))
	ctx, cancel := context.WithTimeout(ctx, extcapTime)
	defer cancel()
	quiet := world
	quiet.Err = discard{}
	client, err := f.connect(ctx, quiet)
	if err != nil {
		return nil
	}
	labs, err := client.Labs(ctx, "")
	if err != nil {
		return nil
	}
	for _, lab := range labs {
		links, err := client.Topology(ctx, lab)
		if err != nil {
			continue
		}
		for _, line := range extcapInterfaces(lab, links) {
			fmt.Fprintln(world.Out, line)
		}
	}
	return nil
}

// extcapInterfaces are the lines for a lab: one for all of it, one for each link.
func extcapInterfaces(lab cluster.Found, links []contract.TopologyLink) []string {
	name := extcapScheme + lab.Namespace + "/" + lab.Name
	line := func(value, display string) string {
		return fmt.Sprintf("interface {value=%s}{display=%s}", extcapText(value), extcapText("c9s "+lab.Name+": "+display))
	}
	out := []string{line(name, "all links")}
	for _, l := range links {
		end := l.A.Node + ":" + l.A.Interface
		if l.B != nil {
			out = append(out, line(name+"/"+end, end+" - "+l.B.Node+":"+l.B.Interface))
		} else {
			out = append(out, line(name+"/"+end, end))
		}
	}
	return out
}

// extcapText drops what would end a value.
func extcapText(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '{' || r == '}' || r < ' ' {
			return '_'
		}
		return r
	}, s)
}

// frames captures what an interface stands for.
func (f *extcapFlags) frames(ctx context.Context, world IO) error {
	text, ok := strings.CutPrefix(f.iface, extcapScheme)
	namespace, rest, named := strings.Cut(text, "/")
	if !ok || !named || f.fifo == "" {
		return fmt.Errorf("--extcap-interface %q with --fifo %q: Wireshark gives both, as c9s has listed them", f.iface, f.fifo)
	}
	c := &captureFlags{filter: f.filter, write: f.fifo}
	c.targetFlags = f.targetFlags
	c.namespace = namespace
	lab, end, one := strings.Cut(rest, "/")
	c.lab = lab
	if !one {
		c.all = true
		return c.run(ctx, world, nil)
	}
	client, found, _, err := c.find(ctx, world)
	if err != nil {
		return err
	}
	links, err := client.Topology(ctx, found)
	if err != nil {
		return fail(err)
	}
	c.link = true
	for _, l := range links {
		if l.B == nil && l.A.Node+":"+l.A.Interface == end {
			c.link = false
		}
	}
	return c.run(ctx, world, []string{end})
}

// extcapFolders are where Wireshark looks for a user's extcaps: releases from 4.2 on in the first.
func extcapFolders() ([]string, error) {
	if runtime.GOOS == "windows" {
		dir, err := os.UserConfigDir()
		return []string{filepath.Join(dir, "Wireshark", "extcap")}, err
	}
	home, err := os.UserHomeDir()
	config := os.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	return []string{filepath.Join(home, ".local", "lib", "wireshark", "extcap"), filepath.Join(config, "wireshark", "extcap")}, err
}

// installExtcap makes c9s known to Wireshark, in a folder or in those where Wireshark looks.
func installExtcap(world IO, dir string) error {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return err
	}
	folders := []string{dir}
	if dir == "" {
		if folders, err = extcapFolders(); err != nil {
			return err
		}
	}
	for _, folder := range folders {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		name := filepath.Join(folder, extcapName)
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		if info, err := os.Lstat(name); err == nil {
			if info.Mode()&os.ModeSymlink == 0 {
				return fmt.Errorf("%s exists and is not a link: remove it", name)
			}
			if err := os.Remove(name); err != nil {
				return err
			}
		}
		if err := os.Symlink(program, name); err != nil {
			return err
		}
		fmt.Fprintf(world.Out, "%s -> %s\n", show.Cell(name), show.Cell(program))
	}
	fmt.Fprintln(world.Err, "start Wireshark again: it lists labs and links of the current context among its interfaces")
	return nil
}
