// Package hooks runs containerlab's node hooks for one node against the recording
// runtime, and turns the record into a plan.
package hooks

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	rand2 "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/planner/internal/recorder"
	"github.com/google/uuid"
	clabcore "github.com/srl-labs/containerlab/core"
	clablinks "github.com/srl-labs/containerlab/links"
	clabnodes "github.com/srl-labs/containerlab/nodes"
	clabruntime "github.com/srl-labs/containerlab/runtime"
	clabtypes "github.com/srl-labs/containerlab/types"
)

// Version is containerlab's, as planner/go.mod pins it.
const Version = "0.79.0"

// Name is the planner's name in every plan.
const Name = "hooks/" + Version

// postDeployTimeout bounds what hooks do after the start: those that want to talk
// to a real device would wait for minutes.
const postDeployTimeout = 20 * time.Second

// run is one node on its way through the hooks.
type run struct {
	*workspace
	lab     *lab.Lab
	node    *lab.Node
	clab    *clabcore.CLab
	hooks   clabnodes.Node
	runtime *recorder.Runtime
	certs   *certificates
	plan    *plan.Plan
	// kind is the catalogue's entry, nil for a kind that it does not have.
	kind *kinds.Kind
	// leftBehind reports that hooks may still run, or hold what others need.
	leftBehind atomic.Bool
}

// Plan runs the hooks for one node. The error is for what is not the topology's
// fault; what it is to blame for is in the plan's Diagnostics. last reports that hooks
// left something behind in this process, which must plan no other node.
func Plan(req *plan.Request) (p *plan.Plan, last bool, err error) {
	if req.Lab == nil {
		return nil, false, errors.New("the request has no lab")
	}
	n := req.Lab.Node(req.Node)
	if n == nil {
		return nil, false, fmt.Errorf("the request's lab has no node %q", req.Node)
	}
	w, err := newWorkspace(req)
	if err != nil {
		return nil, false, err
	}
	defer w.remove()
	kind, _ := kinds.Builtin().Lookup(n.Kind)
	r := &run{
		workspace: w, lab: req.Lab, node: n, kind: kind,
		plan: &plan.Plan{Version: plan.Version, Node: n.Name, Kind: n.Kind, Planner: Name},
	}
	if why, refused := refusedKinds[n.Kind]; refused {
		r.refuse(kinds.CodeRefused, why[1], "kind %q of node %q cannot run in a Pod: %s", n.WrittenKind, n.Name, why[0])
		return r.plan, false, nil
	}
	defer hostEnvironment(n.StartupConfig)()
	Complaints.take()
	for _, step := range []struct {
		phase string
		do    func() error
	}{{"load", r.load}, {"pre-deploy", r.preDeploy}, {"deploy", r.deploy}, {"post-deploy", r.postDeploy}} {
		if r.runtime != nil {
			r.runtime.Phase = step.phase
		}
		if err := r.guarded(step.do); err != nil {
			r.failed(step.phase, err)
			return r.plan, r.leftBehind.Load(), nil
		}
	}
	err = r.convert()
	return r.plan, r.leftBehind.Load(), err
}

// failed says why there is no plan.
func (r *run) failed(phase string, err error) {
	n := r.node
	if n.StartupConfig != nil && strings.Contains(err.Error(), "template") {
		plan.TemplateProblem(r.plan, n, err.Error())
		return
	}
	r.refuse(plan.CodeHookFailed, "correct what the hook complains of, or plan with --planner builtin",
		"node %q: containerlab's hook %s of kind %s failed: %s", n.Name, phase, n.Kind, inOrder(err.Error()))
}

// inOrder sorts what a message lists after "any of": hooks list what they keep in maps,
// in another order each time.
func inOrder(message string) string {
	const before = "any of "
	start := strings.LastIndex(message, before)
	if start < 0 {
		return message
	}
	start += len(before)
	list := message[start:]
	end := len(strings.TrimRight(list, ".)]\"' \n"))
	names := strings.Split(list[:end], ", ")
	slices.Sort(names)
	return message[:start] + strings.Join(names, ", ") + list[end:]
}

// refusedKinds cannot be planned by hooks: why, and what to do.
var refusedKinds = map[string][2]string{
	"k8s-kind":      {"it makes a cluster with Docker, which is not in a Pod", "leave the node out"},
	"ext-container": {"its container is outside the lab", "give the node an image and kind linux"},
}

// guarded turns a panic in a hook into an error. What the hook held then is not known.
func (r *run) guarded(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.leftBehind.Store(true)
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return do()
}

// load parses the topology and makes the planned node, which runs its Init, with the
// index that the lab gives it.
func (r *run) load() error {
	seed(r.lab.Name, r.node.Name)
	hosts := filepath.Join(r.root, "hosts")
	if err := os.MkdirAll(hosts, 0o755); err != nil {
		return err
	}
	topo, err := r.topology(r.node)
	if err != nil {
		return err
	}
	m := r.lab.Mgmt
	facts := recorder.Facts{
		Bridge: "br-c9s", MTU: m.MTU, HostsDir: hosts, ImageLabels: imageLabels(r.node), Answer: answers(r.node),
	}
	if m.IPv4.Gateway.IsValid() {
		facts.IPv4Gw = m.IPv4.Gateway.String()
	}
	if m.IPv6.Gateway.IsValid() {
		facts.IPv6Gw = m.IPv6.Gateway.String()
	}
	if a := r.node.MgmtIPv4; a.IsValid() {
		facts.IPv4Addr, facts.IPv4Bits = a.String(), m.IPv4.Subnet.Bits()
	}
	if a := r.node.MgmtIPv6; a.IsValid() {
		facts.IPv6Addr, facts.IPv6Bits = a.String(), m.IPv6.Subnet.Bits()
	}
	r.runtime = recorder.New(facts)
	r.runtime.Register()
	var definition *clabtypes.NodeDefinition
	r.clab, err = clabcore.NewContainerLab(
		clabcore.WithTimeout(10*time.Second),
		clabcore.WithRuntime(recorder.Name, &clabruntime.RuntimeConfig{Timeout: 10 * time.Second, VerifyLinkParams: &clablinks.VerifyLinkParams{}}),
		clabcore.WithTopoPath(topo, nil),
		withoutNode(r.node.Name, &definition),
	)
	if err != nil {
		return err
	}
	r.clab.Config.Topology.Nodes[r.node.Name] = definition
	seed(r.lab.Name, r.node.Name) // what was made until now drew from it too
	if err := r.clab.NewNode(r.node.Name, recorder.Name, definition, index(r.node)); err != nil {
		return err
	}
	r.hooks = r.clab.Nodes[r.node.Name]
	if err := r.clab.ResolveLinks(); err != nil {
		return err
	}
	if err := r.clab.CreateNetwork(context.Background()); err != nil {
		return err
	}
	cfg := r.hooks.Config()
	cfg.MgmtIPv4Address, cfg.MgmtIPv4PrefixLength, cfg.MgmtIPv4Gateway = facts.IPv4Addr, facts.IPv4Bits, facts.IPv4Gw
	cfg.MgmtIPv6Address, cfg.MgmtIPv6PrefixLength, cfg.MgmtIPv6Gateway = facts.IPv6Addr, facts.IPv6Bits, facts.IPv6Gw
	return clablinks.SetMgmtNetUnderlyingBridge(facts.Bridge)
}

// withoutNode takes a node out of the topology that was read, so that NewContainerLab
// does not make it with an index of its own.
func withoutNode(name string, definition **clabtypes.NodeDefinition) clabcore.ClabOption {
	return func(c *clabcore.CLab) error {
		*definition = c.Config.Topology.Nodes[name]
		delete(c.Config.Topology.Nodes, name)
		return nil
	}
}

// index is the number that hooks number a node's device by. IOL's hook takes it for the
// application id, of which 513 is the far side of every link.
func index(n *lab.Node) int {
	if n.Kind == "cisco_iol" {
		return plan.IOLID(n.Index) - 1 // the hook adds one
	}
	return n.Index
}

// preDeploy runs the node's checks that need no host, and PreDeploy.
func (r *run) preDeploy() error {
	seed(r.lab.Name, r.node.Name) // how many links drew from it is no matter of the node's addresses
	for _, dir := range []string{r.clab.TopoPaths.TopologyLabDir(), r.clab.TopoPaths.CABaseDir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	r.certs = newCertificates()
	r.clab.Cert.CertStorage = r.certs
	r.clab.Cert.CA = r.certs.authority
	if err := r.hooks.CheckInterfaceName(); err != nil {
		return err
	}
	return r.hooks.PreDeploy(context.Background(), &clabnodes.PreDeployParams{
		Cert: r.clab.Cert, TopologyName: r.lab.Name, TopoPaths: r.clab.TopoPaths,
	})
}

func (r *run) deploy() error {
	if err := r.hooks.Deploy(context.Background(), &clabnodes.DeployParams{Nodes: r.clab.Nodes}); err != nil {
		return err
	}
	if len(r.runtime.Created) == 0 {
		return nil
	}
	return r.hooks.UpdateConfigWithRuntimeInfo(context.Background())
}

// postDeploy runs what the hooks do once the container runs, unless the catalogue has
// the kind's steps.
func (r *run) postDeploy() error {
	if r.node.RootNamespace || len(r.runtime.Created) == 0 || r.decided(kinds.DecidesSteps) && !r.req.Full || overNetwork(r.node.Kind) {
		return nil
	}
	if err := registerCLI(filepath.Join(r.root, "cli.log")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), postDeployTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- r.guarded(func() error {
			return r.hooks.PostDeploy(ctx, &clabnodes.PostDeployParams{Nodes: map[string]clabnodes.Node{r.node.Name: r.hooks}})
		})
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(postDeployTimeout):
		r.leftBehind.Store(true)
		return fmt.Errorf("it did not end within %s", postDeployTimeout)
	}
}

// decided reports whether the catalogue has a part of the plan whoever plans.
func (r *run) decided(part string) bool {
	return r.kind != nil && slices.Contains(r.kind.Decides, part)
}

// seed makes everything random in this process repeat for the same node: MAC
// addresses, interface names, UUIDs. Keys and certificates come from elsewhere.
func seed(labName, node string) {
	key := sha256.Sum256([]byte(labName + "\x00" + node))
	reader := &lockedReader{source: rand2.NewChaCha8(key)}
	rand.Reader = reader
	uuid.SetRand(reader)
}

type lockedReader struct {
	mu     sync.Mutex
	source io.Reader
}

func (r *lockedReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Read(p)
}
