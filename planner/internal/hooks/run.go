// Package hooks runs containerlab's node hooks for one node against the recording
// runtime, and turns the record into a plan.
package hooks

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	rand2 "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/planner/internal/recorder"
	"github.com/google/uuid"
	clabcore "github.com/srl-labs/containerlab/core"
	clablinks "github.com/srl-labs/containerlab/links"
	clabnodes "github.com/srl-labs/containerlab/nodes"
	clabruntime "github.com/srl-labs/containerlab/runtime"
)

// Version is containerlab's, as planner/go.mod pins it.
const Version = "0.79.0"

// Name is the planner's name in every plan.
const Name = "hooks/" + Version

// MaxRequest bounds a request, in bytes.
const MaxRequest = 256 << 20

// postDeployTimeout bounds what hooks do after the start: those that want to talk
// to a real device would wait for minutes.
const postDeployTimeout = 20 * time.Second

// Serve reads one request and writes one response.
func Serve(in io.Reader, out io.Writer) error {
	data, err := io.ReadAll(io.LimitReader(in, MaxRequest+1))
	if err != nil {
		return err
	}
	answer := &plan.Response{Version: plan.ProtocolVersion, Planner: Name}
	if len(data) > MaxRequest {
		answer.Error = fmt.Sprintf("the request has more than %d bytes", MaxRequest)
	} else {
		var req plan.Request
		if err := json.Unmarshal(data, &req); err != nil {
			answer.Error = "the request cannot be read: " + err.Error()
		} else if req.Version != plan.ProtocolVersion {
			answer.Error = fmt.Sprintf("the request has version %q, and this program speaks %s", req.Version, plan.ProtocolVersion)
		} else if req.Node != "" {
			answer.Plan, err = Plan(&req)
			if err != nil {
				answer.Plan, answer.Error = nil, err.Error()
			}
		}
	}
	return json.NewEncoder(out).Encode(answer)
}

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
	// cutOff tells that PostDeploy did not come to its end.
	cutOff bool
}

// Plan runs the hooks for one node. The error is for what is not the topology's
// fault; what it is to blame for is in the plan's Diagnostics.
func Plan(req *plan.Request) (*plan.Plan, error) {
	if req.Lab == nil {
		return nil, errors.New("the request has no lab")
	}
	n := req.Lab.Node(req.Node)
	if n == nil {
		return nil, fmt.Errorf("the request's lab has no node %q", req.Node)
	}
	syscall.Umask(0) // the modes that hooks ask for are those that devices see
	r := &run{
		workspace: newWorkspace(req), lab: req.Lab, node: n,
		plan: &plan.Plan{Version: plan.Version, Node: n.Name, Kind: n.Kind, Planner: Name},
	}
	if why, refused := refusedKinds[n.Kind]; refused {
		r.refuse("kind-refused", why[1], "kind %q of node %q cannot run in a Pod: %s", n.WrittenKind, n.Name, why[0])
		return r.plan, nil
	}
	for _, step := range []struct {
		phase string
		do    func() error
	}{{"load", r.load}, {"pre-deploy", r.preDeploy}, {"deploy", r.deploy}, {"post-deploy", r.postDeploy}} {
		if r.runtime != nil {
			r.runtime.Phase = step.phase
		}
		if err := guarded(step.do); err != nil {
			r.refuse(plan.CodeHookFailed, "correct what the hook complains of, or plan with --planner builtin",
				"node %q: containerlab's hook %s of kind %s failed: %s", n.Name, step.phase, n.Kind, inOrder(err.Error()))
			return r.plan, nil
		}
	}
	return r.plan, r.convert()
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

// guarded turns a panic in a hook into an error.
func guarded(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return do()
}

// load parses the topology, which runs every node's Init, and makes the planned
// node once more with the index that the lab gives it.
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
		Bridge: "br-c9s", MTU: m.MTU, HostsDir: hosts, ImageLabels: assumedLabels(r.node), Answer: answers(r.node),
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
	r.clab, err = clabcore.NewContainerLab(
		clabcore.WithTimeout(10*time.Second),
		clabcore.WithRuntime(recorder.Name, &clabruntime.RuntimeConfig{Timeout: 10 * time.Second, VerifyLinkParams: &clablinks.VerifyLinkParams{}}),
		clabcore.WithTopoPath(topo, nil),
	)
	if err != nil {
		return err
	}
	seed(r.lab.Name, r.node.Name) // the other nodes' Init drew from it too
	if err := r.clab.NewNode(r.node.Name, recorder.Name, r.clab.Config.Topology.Nodes[r.node.Name], r.node.Index); err != nil {
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

// preDeploy runs the node's checks that need no host, and PreDeploy.
func (r *run) preDeploy() error {
	for _, dir := range []string{r.clab.TopoPaths.TopologyLabDir(), r.clab.TopoPaths.CABaseDir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	var err error
	if r.certs, err = newCertificates(); err != nil {
		return err
	}
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

// postDeploy runs what the hooks do once the container runs. A hook that talks to
// a device over the network cannot end: what it did until then counts, and the
// plan says that more was to come.
func (r *run) postDeploy() error {
	if r.node.RootNamespace || len(r.runtime.Created) == 0 {
		return nil
	}
	registerCLI(filepath.Join(r.root, "cli.log"))
	ctx, cancel := context.WithTimeout(context.Background(), postDeployTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- guarded(func() error {
			return r.hooks.PostDeploy(ctx, &clabnodes.PostDeployParams{Nodes: map[string]clabnodes.Node{r.node.Name: r.hooks}})
		})
	}()
	limit := postDeployTimeout
	if talksToDevice(r.node) {
		limit = 2 * time.Second
	}
	select {
	case err := <-done:
		if err != nil && talksToDevice(r.node) {
			r.incomplete()
			return nil
		}
		return err
	case <-time.After(limit):
		r.incomplete()
		return nil
	}
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
