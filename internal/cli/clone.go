//go:build !nocluster

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/atomicfile"
	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/access/sshconfig"
	"github.com/c9s-lab/c9s/pkg/convert"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/snapshot"
)

// accessFile tells how to get into the nodes of copies.
const accessFile = "ACCESS.md"

// clonesAtOnce is how many copies are deployed at the same time.
const clonesAtOnce = 4

type cloneFlags struct {
	labCopyFlags
	targetFlags
	count     int
	first     int
	dir       string
	passwords bool
	deploy    bool
	image     string
	mapImage  []string
	ttl       time.Duration
	owner     string
	timeout   time.Duration
}

func newClone(world IO) *cobra.Command {
	f := &cloneFlags{}
	cmd := &cobra.Command{
		Use:   "clone NEWNAME",
		Short: "Copy a lab under another name, or many times for a class",
		Long: `Clone copies a topology with the files that it reads, its policy and its saved configurations
to a new folder. The copy has its own name, namespace and management network. With --count, clone
makes numbered copies (NEWNAME-01, NEWNAME-02, ...), each with its own network. ` + accessFile + ` in
the folder lists the commands that lead to each node of each copy; it has no passwords unless you
set --passwords. With --deploy, clone also deploys the copies.`,
		Example: `  c9s clone experiment
  c9s clone class --count 10
  c9s clone class --count 10 --deploy --ttl 8h
  c9s destroy --all --mine`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkFlags(cmd, args[0]); err != nil {
				return err
			}
			return f.run(cmd.Context(), world, args[0])
		},
	}
	f.labCopyFlags.add(cmd)
	f.addPlanner(cmd)
	f.targetFlags.add(cmd)
	fs := cmd.Flags()
	fs.IntVar(&f.count, "count", 0, "number of copies (default: one, without a number)")
	fs.IntVar(&f.first, "first", 1, "number of the first copy")
	fs.StringVar(&f.dir, "dir", "", "folder of the copies (default: NEWNAME)")
	fs.BoolVar(&f.passwords, "passwords", false, "list the default passwords of nodes in "+accessFile)
	fs.BoolVar(&f.deploy, "deploy", false, "deploy the copies, and wait until they are ready")
	fs.StringVar(&f.image, "image", "", "with --deploy: c9s image of the Pods")
	fs.StringArrayVar(&f.mapImage, "map-image", nil, "with --deploy: FROM=TO: use the image TO instead of FROM; a trailing * matches any suffix (repeatable)")
	fs.DurationVar(&f.ttl, "ttl", 0, "with --deploy: remove the copies after this time, such as 8h")
	fs.StringVar(&f.owner, "owner", "", "with --deploy: owner of the copies (default: your name in the cluster)")
	fs.DurationVar(&f.timeout, "timeout", 0, "with --deploy: time limit for each copy (default: wait until it is ready or cannot become ready)")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

// mostCopies is how many copies clone makes at once.
const mostCopies = 1000

// copyName is what a copy can be called: its namespace has the same name.
var copyName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

func (f *cloneFlags) checkFlags(cmd *cobra.Command, name string) error {
	if err := f.check(); err != nil {
		return err
	}
	several := cmd.Flags().Changed("count")
	switch {
	case !copyName.MatchString(name) || len(name) > 40:
		return fmt.Errorf("name %q: use up to 40 lower-case letters, digits and hyphens, and a letter first: the namespace has the same name", name)
	case several && (f.count < 1 || f.count > mostCopies):
		return fmt.Errorf("--count %d: use a number from 1 to %d", f.count, mostCopies)
	case f.first < 1 || f.first > 1_000_000:
		return fmt.Errorf("--first %d: use a number from 1 to 1000000", f.first)
	case !several && cmd.Flags().Changed("first"):
		return errors.New("--first needs --count")
	case !f.deploy && (f.image != "" || len(f.mapImage) > 0 || f.ttl != 0 || f.owner != "" || f.timeout != 0):
		return errors.New("--image, --map-image, --ttl, --owner and --timeout need --deploy")
	}
	return nil
}

// labCopy is one copy.
type labCopy struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Folder has the copy, and Topology is its topology.
	Folder   string       `json:"folder"`
	Topology string       `json:"topology"`
	IPv4     netip.Prefix `json:"ipv4,omitzero"`
	IPv6     netip.Prefix `json:"ipv6,omitzero"`
	Nodes    []nodeAccess `json:"nodes"`
	State    string       `json:"state"`
	Reason   string       `json:"reason,omitempty"`
	saved    bool
	kindsDir string
}

// nodeAccess is how to get into a node.
type nodeAccess struct {
	Node     string   `json:"node"`
	Kind     string   `json:"kind"`
	Commands []string `json:"commands"`
	User     string   `json:"user,omitempty"`
	Password string   `json:"password,omitempty"`
}

// The states of a copy.
const (
	copyWritten = "written"
	copyReady   = "ready"
)

func (f *cloneFlags) run(ctx context.Context, world IO, name string) error {
	original, c, err := f.collect(ctx, world, "")
	if err != nil {
		return err
	}
	defer c.Close()
	warnMissing(world, original)
	top := f.dir
	if top == "" {
		top = name
	}
	copies, err := f.plan(name, top, original, c.Lab.Mgmt)
	if err != nil {
		return fail(err)
	}
	// All of it before the first file: a run that ends halfway could not be repeated.
	taken := []string{filepath.Join(top, accessFile), filepath.Join(top, studentsFile)}
	if f.count > 0 {
		for i := range copies {
			taken = append(taken, copies[i].Folder)
		}
	}
	for _, name := range taken {
		if _, err := os.Lstat(name); err == nil {
			return fail(fmt.Errorf("%s exists: choose another folder with --dir; nothing was written", name))
		}
	}
	for i := range copies {
		if err := f.write(ctx, world, &copies[i], original, c); err != nil {
			return err
		}
	}
	accounts, err := students(copies)
	if err == nil {
		err = atomicfile.Write(filepath.Join(top, studentsFile), accounts, 0o644, 0o755)
	}
	if err == nil {
		err = atomicfile.Write(filepath.Join(top, accessFile), accessPage(name, copies), 0o600, 0o755)
	}
	if err != nil {
		return fail(err)
	}
	if f.deploy {
		f.deployAll(ctx, world, copies)
		if ctx.Err() != nil {
			return exitCode(exitInterrupted)
		}
	}
	if err := f.print(world, top, copies); err != nil {
		return fail(err)
	}
	if slices.ContainsFunc(copies, func(l labCopy) bool { return l.State == failedState }) {
		return errFailed
	}
	return nil
}

// plan names the copies and gives each a management network.
func (f *cloneFlags) plan(name, top string, original *snapshot.Snapshot, mgmt lab.Mgmt) ([]labCopy, error) {
	count := max(f.count, 1)
	out := make([]labCopy, count)
	digits := max(len(fmt.Sprint(f.first+count-1)), 2)
	for i := range out {
		l := labCopy{Name: name, Folder: top, State: copyWritten}
		if f.count > 0 {
			l.Name = fmt.Sprintf("%s-%0*d", name, digits, f.first+i)
			l.Folder = filepath.Join(top, l.Name)
		}
		if l.Name == original.Lab {
			return nil, fmt.Errorf("the lab itself is called %s: choose another name", l.Name)
		}
		for _, family := range []struct{ from, to *netip.Prefix }{{&mgmt.IPv4.Subnet, &l.IPv4}, {&mgmt.IPv6.Subnet, &l.IPv6}} {
			if !family.from.IsValid() {
				continue
			}
			var err error
			if *family.to, err = snapshot.Subnet(*family.from, f.first+i); err != nil {
				return nil, err
			}
		}
		out[i] = l
	}
	return out, nil
}

// write writes a copy, and checks that it is a lab.
func (f *cloneFlags) write(ctx context.Context, world IO, l *labCopy, original *snapshot.Snapshot, from *pipeline.Compiled) error {
	text, err := convert.CopyLab(string(from.Source.Data), convert.Copy{
		Name: l.Name,
		IPv4: convert.Move{From: from.Lab.Mgmt.IPv4.Subnet, To: l.IPv4},
		IPv6: convert.Move{From: from.Lab.Mgmt.IPv6.Subnet, To: l.IPv6},
	})
	if from.Source.IsTemplate() {
		err = errors.New("it is a template, and only plain YAML can be copied under another name")
	}
	if err != nil {
		return fail(fmt.Errorf("%s: %w", from.Source.Name, err))
	}
	made := *original
	made.Allocations = nil // a copy has addresses of its own
	made.Files = slices.Clone(original.Files)
	made.Set(snapshot.File{Name: original.Topology, Mode: 0o644, Data: []byte(text)})
	if err := made.Restore(l.Folder); err != nil {
		return fail(err)
	}
	l.Topology = filepath.Join(l.Folder, filepath.FromSlash(original.Topology))
	l.saved = slices.ContainsFunc(original.Nodes, func(n snapshot.Node) bool { return n.From == snapshot.FromSaved })
	if original.Kinds != "" {
		l.kindsDir = filepath.Join(l.Folder, filepath.FromSlash(original.Kinds))
	}
	c, err := (&topoFlags{kindsDir: l.kindsDir, saved: l.saved}).compile(ctx, world, l.Topology, pipeline.Input{})
	if err != nil {
		return err
	}
	defer c.Close()
	if c.Lab == nil || hasErrors(c.Diags) {
		report(world, c.Diags)
		return fail(fmt.Errorf("the copy in %s is not a lab that can be deployed", l.Folder))
	}
	l.Namespace = c.Lab.Namespace
	for _, n := range c.Lab.Nodes {
		if a, ok := f.access(l, n, c.Kinds); ok {
			l.Nodes = append(l.Nodes, a)
		}
	}
	return nil
}

// access returns the commands that lead to a node; false for one without a container.
func (f *cloneFlags) access(l *labCopy, n *lab.Node, catalogue *kinds.Catalogue) (nodeAccess, bool) {
	kind, ok := catalogue.Lookup(n.Kind)
	if !ok || kind.RootNamespace {
		return nodeAccess{}, false
	}
	a := nodeAccess{Node: n.Name, Kind: n.Kind}
	command := func(verb string) {
		a.Commands = append(a.Commands, fmt.Sprintf("c9s %s %s --lab %s -n %s", verb, sshconfig.Quote(n.Name), l.Name, l.Namespace))
	}
	if n.Credentials.Username != "" {
		command("ssh")
		a.User = n.Credentials.Username
		if f.passwords {
			a.Password = n.Credentials.Password
		}
	}
	if kind.VM {
		command("console")
	} else {
		command("shell")
	}
	return a, true
}

// accessPage is the file that tells students how to get into their labs.
func accessPage(name string, copies []labCopy) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# How to get into %s\n\n", name)
	b.WriteString("You need c9s and a kubeconfig for the namespace of your lab. `export KUBECONFIG=FILE` makes c9s use it.\n")
	for i := range copies {
		l := &copies[i]
		fmt.Fprintf(&b, "\n## %s\n\n", l.Name)
		fmt.Fprintf(&b, "Namespace %s, management network %s\n\n", l.Namespace, networks(l))
		fmt.Fprintf(&b, "    c9s status %s -n %s\n", l.Name, l.Namespace)
		for _, n := range l.Nodes {
			for j, command := range n.Commands {
				note := n.Kind
				if j == 0 && n.User != "" {
					note += ", user " + n.User
					if n.Password != "" {
						note += ", password " + n.Password
					}
				}
				fmt.Fprintf(&b, "    %-60s # %s\n", command, note)
			}
		}
	}
	b.WriteString(`
## For the teacher

` + studentsFile + ` has an account for each lab, which can see the lab and get into its nodes. Once the labs are deployed, create
the accounts, and a token for each student. Destroy deletes the accounts with the labs.

    kubectl apply -f ` + studentsFile + `
    kubectl -n NAMESPACE create token student --duration=8h

A token also leads to the sidecars of the Pods, which are privileged: whoever has it can become root on a worker.

A kubeconfig for a student has the address of your cluster and the token:

    kubectl config view --minify --flatten > student.kubeconfig
    kubectl --kubeconfig student.kubeconfig config unset users
    kubectl --kubeconfig student.kubeconfig config set-credentials student --token=TOKEN
    kubectl --kubeconfig student.kubeconfig config set-context --current --user=student --namespace=NAMESPACE
`)
	return b.Bytes()
}

// networks lists the management networks of a copy.
func networks(l *labCopy) string {
	switch {
	case !l.IPv6.IsValid():
		return l.IPv4.String()
	case !l.IPv4.IsValid():
		return l.IPv6.String()
	}
	return l.IPv4.String() + " and " + l.IPv6.String()
}

// deployAll deploys the copies. What a deploy prints is shown only if it fails.
func (f *cloneFlags) deployAll(ctx context.Context, world IO, copies []labCopy) {
	bounded.Each(len(copies), clonesAtOnce, func(i int) {
		l := &copies[i]
		if ctx.Err() != nil {
			return
		}
		var said bytes.Buffer
		quiet := world
		quiet.In, quiet.Out, quiet.Err, quiet.Color = bytes.NewReader(nil), &said, &said, false
		d := &deployFlags{
			labFlags: labFlags{
				topoFlags: topoFlags{kindsDir: l.kindsDir, saved: l.saved, planner: f.planner, plannerPath: f.plannerPath},
				mapImage:  f.mapImage, image: f.image,
			},
			targetFlags: f.targetFlags,
			wait:        true, timeout: f.timeout, dryRun: "none", yes: true, ttl: f.ttl, owner: f.owner,
		}
		began := time.Now()
		err := d.run(ctx, quiet, []string{l.Topology})
		if err == nil {
			l.State = copyReady
			fmt.Fprintf(world.Err, "lab %s: ready (%.1f s)\n", l.Name, time.Since(began).Seconds())
			return
		}
		l.State = failedState
		if l.Reason = err.Error(); errors.Is(err, errFailed) {
			l.Reason = "see the messages of deploy"
		}
		fmt.Fprintf(world.Err, "lab %s: %s\n%s", l.Name, show.Cell(l.Reason), said.String())
	})
}

func (f *cloneFlags) print(world IO, top string, copies []labCopy) error {
	if f.output == "json" {
		return printJSON(world.Out, copies)
	}
	t := show.NewTable(tabwriter.NewWriter(world.Out, 0, 0, 2, ' ', 0))
	t.Row("LAB", "NAMESPACE", "NETWORK", "STATE", "TOPOLOGY")
	for i := range copies {
		l := &copies[i]
		t.Row(l.Name, l.Namespace, networks(l), l.State, l.Topology)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(world.Err, "%s in %s; %s lists the commands that lead to the nodes\n", diag.Count(len(copies), "lab"), show.Cell(top), show.Cell(filepath.Join(top, accessFile)))
	return err
}
