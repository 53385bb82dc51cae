//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/pkg/access"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/save"
	"github.com/c9s-lab/c9s/pkg/tunnel"
)

// configs reads the configurations of a lab's nodes: the running ones, and those saved in a
// folder.
type configs struct {
	client    *cluster.Client
	found     cluster.Found
	catalogue *kinds.Catalogue
	dir       string
	reach     *access.Lab
	timeout   time.Duration
	// logins are those that only the topology has, by node.
	logins map[string]lab.Credentials
}

// openConfigs corrects the kinds of nodes, and returns their configurations.
func openConfigs(ctx context.Context, world IO, client *cluster.Client, found cluster.Found, nodes []cluster.Node, catalogue *kinds.Catalogue, at localLab) (*configs, error) {
	directory, err := client.Directory(ctx, found)
	if err != nil {
		return nil, err
	}
	setKinds(nodes, directory)
	return &configs{
		client: client, found: found, catalogue: catalogue, dir: at.dir, reach: tunnels(client, found.Namespace), timeout: configTime,
		logins: at.logins(ctx, world, found.Name, nodes),
	}, nil
}

// configTime is how long to wait for the running configuration of a node.
const configTime = 2 * time.Minute

func (c *configs) Close() { c.reach.Close() }

// kind returns the kind of a node whose configuration can be saved, or says why it cannot.
func (c *configs) kind(n cluster.Node) (*kinds.Kind, error) {
	kind, ok := c.catalogue.Lookup(n.Kind)
	switch {
	case !contract.HostName(n.Name): // the name comes from the cluster, and might be a path
		return nil, errors.New("its name cannot be that of a file")
	case !ok:
		return nil, fmt.Errorf("%w: kind %q is not in the catalogue; name the folder of your own kinds with --kinds", save.ErrUnsupported, n.Kind)
	case len(n.Containers) == 0:
		return nil, fmt.Errorf("%w: it has no container", save.ErrUnsupported)
	case kind.Save == nil:
		return nil, fmt.Errorf("%w: kind %s has no rule for saving", save.ErrUnsupported, kind.Name)
	}
	return kind, nil
}

// running returns the running configuration of a node.
func (c *configs) running(ctx context.Context, n cluster.Node, kind *kinds.Kind) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	config, err := save.Config(ctx, kind, c.device(n, kind))
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no configuration within %s", c.timeout)
	}
	return config, err
}

// device is a node as package save sees it.
func (c *configs) device(n cluster.Node, kind *kinds.Kind) save.Device {
	login, ok := c.logins[n.Name]
	if !ok {
		login = loginWith(n, kind)
	}
	return save.Device{
		Exec: func(ctx context.Context, argv []string, in io.Reader, out, errOut io.Writer) (int, error) {
			return execIn(ctx, c.client, c.found, n, argv, cluster.Streams{In: in, Out: out, Err: errOut})
		},
		Dial: func(ctx context.Context, port uint16) (net.Conn, error) {
			if err := notStopped(n); err != nil {
				return nil, err
			}
			return dialNode(ctx, c.reach, n.Deployment, tunnel.Target{Network: tunnel.TCP, Port: port})
		},
		Login: login,
	}
}

// file is where the configuration of a node is saved.
func (c *configs) file(n cluster.Node, kind *kinds.Kind) string {
	return filepath.Join(c.dir, kind.Save.File(n.Name))
}

// saved returns the saved configuration of a node, nil if there is none.
func (c *configs) saved(n cluster.Node, kind *kinds.Kind) ([]byte, error) {
	data, err := os.ReadFile(c.file(n, kind))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// The states of a node's configuration.
const (
	configSaved       = "saved"
	configUnsaved     = "unsaved"
	configNever       = "never saved"
	configUnsupported = "-"
	configUnknown     = "unknown"
)

// states returns the state of each node's configuration. Only nodes with a saved one can have
// unsaved work: what others had at the start is not known.
func (c *configs) states(ctx context.Context, nodes []cluster.Node) map[string]string {
	list := make([]string, len(nodes))
	bounded.Each(len(nodes), nodesAtOnce, func(i int) { list[i] = c.state(ctx, nodes[i]) })
	out := map[string]string{}
	for i, n := range nodes {
		out[n.Name] = list[i]
	}
	return out
}

func (c *configs) state(ctx context.Context, n cluster.Node) string {
	kind, err := c.kind(n)
	if err != nil {
		return configUnsupported
	}
	saved, err := c.saved(n, kind)
	if err != nil {
		return configUnknown
	}
	if saved == nil {
		return configNever
	}
	running, err := c.running(ctx, n, kind)
	switch {
	case errors.Is(err, save.ErrUnsupported):
		return configUnsupported
	case err != nil:
		return configUnknown
	}
	switch text, err := save.Diff(kind.Save, "saved", saved, "running", running); {
	case err != nil:
		return configUnknown
	case text != "":
		return configUnsaved
	}
	return configSaved
}

// unsaved returns the names of the nodes with unsaved work, and of those whose configuration
// cannot be read, so that they may have some.
func (c *configs) unsaved(ctx context.Context, nodes []cluster.Node) (unsaved, unknown []string) {
	states := c.states(ctx, nodes)
	for _, n := range nodes {
		switch states[n.Name] {
		case configUnsaved:
			unsaved = append(unsaved, n.Name)
		case configUnknown:
			unknown = append(unknown, n.Name)
		}
	}
	return unsaved, unknown
}

// keepWork offers to save what is about to be lost with the Pods of some nodes: it saves with
// always, or asks for the nodes with unsaved work. Without a folder of saved configurations it
// does nothing but with always.
type keepWork struct {
	save bool
	yes  bool
	at   localLab
	// table receives the table of what was saved, standard output if it is nil.
	table io.Writer
}

// before saves, or asks. doing completes the question: "restart".
func (k keepWork) before(ctx context.Context, world IO, client *cluster.Client, found cluster.Found, nodes []cluster.Node, catalogue *kinds.Catalogue, doing string) error {
	if k.at.dir == "" && k.save {
		return errors.New("--save needs the folder of the topology: name it with --topo")
	}
	if !k.save && (k.yes || !anyFile(k.at.dir)) {
		return nil
	}
	c, err := openConfigs(ctx, world, client, found, nodes, catalogue, k.at)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	if nodes, err = eachOnce(nodes); err != nil {
		return fail(err)
	}
	if k.save {
		if k.table != nil {
			world.Out = k.table
		}
		return (&saveFlags{timeout: configTime}).saveAll(ctx, world, c, nodes)
	}
	unsaved, unknown := c.unsaved(ctx, nodes)
	if ctx.Err() != nil || len(unsaved)+len(unknown) == 0 {
		return ctx.Err()
	}
	question := ""
	if len(unsaved) > 0 {
		question = fmt.Sprintf("The running configuration of %s is not saved. ", strings.Join(unsaved, ", "))
	}
	if len(unknown) > 0 {
		question += fmt.Sprintf("The running configuration of %s cannot be read. ", strings.Join(unknown, ", "))
	}
	question += doing + " and lose it?"
	return confirm(ctx, world, question, "--save to save it first, or --yes")
}

// anyFile reports whether a folder has a file.
func anyFile(dir string) bool {
	if dir == "" {
		return false
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if !e.IsDir() {
			return true
		}
	}
	return false
}

// localLab is what this machine has of a lab. The zero value is a lab whose topology is
// elsewhere.
type localLab struct {
	topo string
	// dir is the folder of its saved configurations.
	dir string
}

// localFiles finds the files of the lab that the command line names.
func localFiles(topo, lab string) localLab {
	if topo == "" && lab == "" && topologyHere() {
		topo = "."
	}
	info, err := os.Stat(topo)
	switch {
	case topo == "" || err != nil:
		return localLab{}
	case info.IsDir():
		return localLab{topo, filepath.Join(topo, kinds.SavedFolder)}
	}
	return localLab{topo, filepath.Join(filepath.Dir(topo), kinds.SavedFolder)}
}

// compileOf compiles a topology if it is that of a lab, and returns nil otherwise.
func compileOf(ctx context.Context, world IO, topo, lab string) (*pipeline.Compiled, error) {
	c, err := (&topoFlags{}).compile(ctx, world, topo, pipeline.Input{})
	if err == nil && (c.Lab == nil || c.Lab.Name != lab) {
		c.Close()
		return nil, nil
	}
	return c, err
}

// logins returns the logins of nodes if the cluster lacks the password of one of them, and the
// topology has it.
func (at localLab) logins(ctx context.Context, world IO, name string, nodes []cluster.Node) map[string]lab.Credentials {
	lacking := func(n cluster.Node) bool { return n.Login != nil && n.Login.Password && n.Given.Password == "" }
	if at.topo == "" || !slices.ContainsFunc(nodes, lacking) {
		return nil
	}
	c, err := compileOf(ctx, world, at.topo, name)
	if c == nil || err != nil {
		return nil
	}
	defer c.Close()
	out := map[string]lab.Credentials{}
	for _, n := range nodes {
		if declared := c.Lab.Node(n.Name); declared != nil && lacking(n) {
			out[n.Name] = declared.Credentials
		}
	}
	return out
}
