//go:build !nocluster

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/policy"
)

// linkChange is a command that changes what interfaces do to the frames that they send.
type linkChange struct {
	nodeRef
	both   bool
	length time.Duration
	write  bool
	policy string
	output string
}

// quality returns what an interface does after a change.
type quality func(l *links, in contract.Interface, now contract.Quality) contract.Quality

// command is a command with the flags that all have.
func (f *linkChange) command(world IO, use, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: cobra.MinimumNArgs(1)}
	f.add(cmd, world, "t")
	cmd.ValidArgsFunction = f.completeEnds(world)
	addLinkOutput(cmd, &f.output)
	return cmd
}

func (f *linkChange) addFor(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.length, "for", 0, "take the change back after this time")
}

func (f *linkChange) addWrite(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.write, "write", false, "also declare the impairment in the policy file")
	fs.StringVar(&f.policy, "policy", "", "policy file for --write (default: c9s.yaml next to the topology)")
	_ = cmd.MarkFlagFilename("policy", "yml", "yaml")
}

func (f *linkChange) check() error {
	switch {
	case f.output != "" && f.output != "json":
		return fmt.Errorf("--output %q: use json", f.output)
	case f.length < 0 || f.length > contract.MaxFault:
		return fmt.Errorf("--for %s: use a duration up to %s", f.length, contract.MaxFault)
	case f.length > 0 && f.write:
		return errors.New("--for and --write exclude one another: the policy file declares what stays")
	case f.policy != "" && !f.write:
		return errors.New("--policy needs --write")
	}
	return nil
}

// change returns a change of the impairment, for a while if the command line says so.
func (f *linkChange) change(of func(*contract.Impairment)) quality {
	now := time.Now().UTC()
	return func(_ *links, _ contract.Interface, q contract.Quality) contract.Quality {
		if f.length > 0 {
			return q.Cause(contract.Fault{Began: now, LengthMS: f.length.Milliseconds()}, of)
		}
		return q.Change(now, of)
	}
}

// run changes interfaces, and their peers with --both, prints them, and writes the policy file.
func (f *linkChange) run(ctx context.Context, world IO, args []string, to quality) error {
	if err := notEmpty(args); err != nil {
		return err
	}
	l, err := f.links(ctx, world)
	if err != nil {
		return err
	}
	for _, arg := range args { // all of them, before the first change
		if _, _, err := l.end(arg); err != nil {
			return fail(err)
		}
	}
	var rows []linkEnd
	for _, arg := range args {
		changed, err := l.setEnds(ctx, arg, f.both, to)
		rows = append(rows, changed...)
		if err != nil {
			if len(rows) > 0 {
				err = errors.Join(fmt.Errorf("%w; the table has what was changed before", err), printEnds(world, rows, f.output))
			}
			return fail(err)
		}
	}
	if f.write {
		if err := f.declare(ctx, world, l.found.Name, rows); err != nil {
			return fail(err)
		}
	}
	return fail(printEnds(world, rows, f.output))
}

// setEnds changes an interface and, with both, its peer.
func (l *links) setEnds(ctx context.Context, arg string, both bool, to quality) ([]linkEnd, error) {
	row, err := l.set(ctx, arg, to)
	if err != nil {
		return nil, err
	}
	if !both {
		return []linkEnd{row}, nil
	}
	peer, err := l.set(ctx, row.Peer, to)
	if err != nil {
		return []linkEnd{row}, err
	}
	return []linkEnd{row, peer}, nil
}

// disturb changes an interface, and its peer with both, and returns what restores them. It may
// return both a function and an error.
func (l *links) disturb(ctx context.Context, arg string, both bool, to quality) (undo func(context.Context) error, err error) {
	type end struct {
		name   string
		before contract.Quality
	}
	var ends []end
	keeping := func(l *links, in contract.Interface, now contract.Quality) contract.Quality {
		name := in.Node + ":" + in.Name
		ends = append(slices.DeleteFunc(ends, func(e end) bool { return e.name == name }), end{name, now})
		return to(l, in, now)
	}
	_, err = l.setEnds(ctx, arg, both, keeping)
	return func(ctx context.Context) (err error) {
		for _, e := range ends {
			_, failed := l.set(ctx, e.name, func(*links, contract.Interface, contract.Quality) contract.Quality {
				return contract.Quality{Impairment: e.before.Impairment, Fault: e.before.Fault.Rest(time.Now())}
			})
			err = cmp.Or(err, failed)
		}
		return err
	}, err
}

// set changes one interface.
func (l *links) set(ctx context.Context, arg string, to quality) (linkEnd, error) {
	node, name, err := l.end(arg)
	if err != nil {
		return linkEnd{}, err
	}
	in, err := l.client.Impair(ctx, l.found, node, name, func(in contract.Interface, now contract.Quality) contract.Quality {
		return to(l, in, now)
	})
	if err != nil {
		return linkEnd{}, err
	}
	row, _ := l.row(in)
	return row, nil
}

type linkSetFlags struct {
	linkChange
	impair        policy.Impair
	delay, jitter time.Duration
}

func newLinkSet(world IO) *cobra.Command {
	f := &linkSetFlags{}
	cmd := f.command(world, "set NODE:INTERFACE...", "Impair what interfaces send",
		`Set changes the impairment of what interfaces send. Flags that are not given leave their
figure as it is; a figure of 0 removes it.`,
		`  c9s link set R1:eth1 --delay 50ms --jitter 5ms
  c9s link set R1:eth1 R2:eth1 --loss 5 --both --for 1m
  c9s link set srl1:ethernet-1/1 --rate 10mbit --write`)
	fs := cmd.Flags()
	fs.DurationVar(&f.delay, "delay", 0, "delay of each frame, up to 1m")
	fs.DurationVar(&f.jitter, "jitter", 0, "random deviation from the delay")
	fs.Float64Var(&f.impair.Loss, "loss", 0, "lost frames, in percent")
	fs.StringVar(&f.impair.Rate, "rate", "", "limit with a unit, such as 64kbit, 10mbit or 1gbit; 0 for none")
	fs.Float64Var(&f.impair.Corruption, "corruption", 0, "corrupted frames, in percent")
	fs.Float64Var(&f.impair.Duplication, "duplication", 0, "duplicated frames, in percent")
	fs.Float64Var(&f.impair.Reordering, "reordering", 0, "reordered frames, in percent")
	fs.BoolVar(&f.both, "both", false, "also impair what the peer sends")
	f.addFor(cmd)
	f.addWrite(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		to, err := f.figures(cmd)
		if err != nil {
			return err
		}
		return f.run(cmd.Context(), world, args, f.change(to))
	}
	return cmd
}

// figures are the flags of set that change an impairment, with what each one changes.
var figures = map[string]func(to *contract.Impairment, from contract.Impairment){
	"delay":       func(to *contract.Impairment, from contract.Impairment) { to.DelayMS = from.DelayMS },
	"jitter":      func(to *contract.Impairment, from contract.Impairment) { to.JitterMS = from.JitterMS },
	"loss":        func(to *contract.Impairment, from contract.Impairment) { to.Loss = from.Loss },
	"rate":        func(to *contract.Impairment, from contract.Impairment) { to.RateKbit = from.RateKbit },
	"corruption":  func(to *contract.Impairment, from contract.Impairment) { to.Corruption = from.Corruption },
	"duplication": func(to *contract.Impairment, from contract.Impairment) { to.Duplication = from.Duplication },
	"reordering":  func(to *contract.Impairment, from contract.Impairment) { to.Reordering = from.Reordering },
}

// figures returns the change that the command line asks for.
func (f *linkSetFlags) figures(cmd *cobra.Command) (func(*contract.Impairment), error) {
	var given []string
	for name := range figures {
		if cmd.Flags().Changed(name) {
			given = append(given, name)
		}
	}
	if len(given) == 0 {
		return nil, errors.New("nothing to set: give --delay, --loss, --rate or another figure, or use reset")
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	f.impair.Delay, f.impair.Jitter = f.delay.String(), f.jitter.String()
	if f.impair.Rate == "0" {
		f.impair.Rate = ""
	}
	from, err := f.impair.Compile()
	if err != nil {
		return nil, err
	}
	return func(to *contract.Impairment) {
		for _, name := range given {
			figures[name](to, *from)
		}
	}, nil
}

// setDown runs a command that takes links down or up.
func (f *linkChange) setDown(world IO, down bool) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		return f.run(cmd.Context(), world, args, f.change(func(i *contract.Impairment) { i.Down = down }))
	}
}

func newLinkDown(world IO) *cobra.Command {
	f := &linkChange{}
	cmd := f.command(world, "down NODE:INTERFACE...", "Take links down",
		`Down takes the carrier from both ends of links, as if the cables were pulled out. Nothing is
deleted: the interfaces and their addresses stay. Link up undoes it.`,
		`  c9s link down R1:eth1
  c9s link down R1:eth1 R2:eth3 --for 30s`)
	f.addFor(cmd)
	f.addWrite(cmd)
	cmd.RunE = f.setDown(world, true)
	return cmd
}

func newLinkUp(world IO) *cobra.Command {
	f := &linkChange{both: true} // either end may have taken the link down
	cmd := f.command(world, "up NODE:INTERFACE...", "Undo link down and link flap",
		"Up gives both ends of links their carrier again, and ends a flap. Other impairments stay.", "  c9s link up R1:eth1")
	f.addWrite(cmd)
	cmd.RunE = f.setDown(world, false)
	return cmd
}

func newLinkFlap(world IO) *cobra.Command {
	f := &linkChange{}
	var times int
	var every, down time.Duration
	cmd := f.command(world, "flap NODE:INTERFACE...", "Take links down and up several times",
		`Flap takes links down and up again, several times in a row, and returns at once: the sidecar
does it, whatever happens to c9s. Link up ends it early.`,
		`  c9s link flap R1:eth1 --times 3 --every 2s
  c9s link flap R1:eth1 --times 10 --every 30s --down 1s`)
	fs := cmd.Flags()
	fs.IntVar(&times, "times", 3, "number of times")
	fs.DurationVar(&every, "every", 2*time.Second, "time from one to the next")
	fs.DurationVar(&down, "down", 0, "how long the link is down each time (default: half of --every)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("down") {
			down = every / 2
		}
		fault, err := contract.Flap(time.Now(), times, every, down)
		if err == nil {
			err = f.check()
		}
		if err != nil {
			return err
		}
		return f.run(cmd.Context(), world, args, func(_ *links, _ contract.Interface, q contract.Quality) contract.Quality {
			return q.Cause(fault, func(i *contract.Impairment) { i.Down = true })
		})
	}
	return cmd
}

func newLinkReset(world IO) *cobra.Command {
	f := &linkChange{}
	var all bool
	cmd := f.command(world, "reset NODE:INTERFACE... | --all", "Restore the impairments that the policy declares",
		"Reset restores what the policy declares, and ends faults that would end by themselves later.", "  c9s link reset R1:eth1\n  c9s link reset --all")
	cmd.Args = cobra.ArbitraryArgs
	cmd.Flags().BoolVar(&f.both, "both", false, "also restore what the peer sends")
	cmd.Flags().BoolVar(&all, "all", false, "restore every link of the lab")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if all == (len(args) > 0) {
			return errors.New("name interfaces as NODE:INTERFACE, or use --all")
		}
		if err := f.check(); err != nil {
			return err
		}
		declared := func(l *links, in contract.Interface, _ contract.Quality) contract.Quality {
			return contract.Quality{Impairment: l.declared[in.Node+":"+in.Name]}
		}
		if all {
			return f.resetAll(cmd.Context(), world, declared)
		}
		return f.run(cmd.Context(), world, args, declared)
	}
	return cmd
}

// resetAll restores every interface that differs from what is declared. One that it cannot restore
// does not keep it from the others.
func (f *linkChange) resetAll(ctx context.Context, world IO, to quality) error {
	l, err := f.links(ctx, world)
	if err != nil {
		return err
	}
	rows, err := l.rows(ctx, l.nodes)
	if err != nil {
		return fail(err)
	}
	var reset []linkEnd
	var failed []error
	for _, row := range rows {
		if !row.Changed {
			continue
		}
		name := row.Node + ":" + row.Interface
		if row, err = l.set(ctx, name, to); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			continue
		}
		reset = append(reset, row)
	}
	return fail(errors.Join(append(failed, printEnds(world, reset, f.output))...))
}
