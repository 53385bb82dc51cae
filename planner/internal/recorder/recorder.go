// Package recorder is a container runtime for containerlab's node hooks that
// performs nothing: it records what it is asked to do, and answers questions from
// what the request knows.
package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	clabexec "github.com/srl-labs/containerlab/exec"
	clablinks "github.com/srl-labs/containerlab/links"
	clabruntime "github.com/srl-labs/containerlab/runtime"
	clabtypes "github.com/srl-labs/containerlab/types"
)

// Name is what the runtime calls itself; the map of CLI programs has it too.
const Name = "recorder"

// Facts are the answers to what hooks ask of a runtime.
type Facts struct {
	// Bridge, MTU (bytes) and gateways complete the management network.
	Bridge   string
	MTU      int
	IPv4Gw   string
	IPv6Gw   string
	IPv4Addr string
	IPv4Bits int
	IPv6Addr string
	IPv6Bits int
	// ImageLabels are the labels of the node's image, or what is assumed of them.
	ImageLabels map[string]string
	// HostsDir is a folder for the hosts files that hooks append to.
	HostsDir string
	// Answer is the output of a command in a container; see Exec.
	Answer func(argv []string) string
}

// Runtime records. It is used by one goroutine at a time, as hooks are run one
// after the other.
type Runtime struct {
	facts  Facts
	mgmt   *clabtypes.MgmtNet
	config clabruntime.RuntimeConfig
	// Phase is set by the driver and stamped on every operation.
	Phase string
	// Created are the containers in the order of their creation, as the hooks
	// wanted them at that moment.
	Created []Container
	// Ops are all other operations, in their order.
	Ops []Op
}

// Container is one CreateContainer.
type Container struct {
	Name   string
	Config clabtypes.NodeConfig
}

// Op is one operation on a container.
type Op struct {
	Phase     string
	Container string
	// Exactly one of these is set.
	Exec  []string
	Copy  *Copy
	Stdin []byte
	// Detach tells that Exec is not waited for.
	Detach bool
	// Answer is what Exec was told.
	Answer string
}

// Copy is a file that a hook put into a container.
type Copy struct {
	Path    string
	Content []byte
}

var _ clabruntime.ContainerRuntime = (*Runtime)(nil)

// New makes a runtime that answers with facts.
func New(facts Facts) *Runtime { return &Runtime{facts: facts} }

// Register puts r in the place of every runtime that containerlab knows, so that
// a node's own `runtime:` reaches it too.
func (r *Runtime) Register() {
	for name := range clabruntime.ContainerRuntimes {
		clabruntime.ContainerRuntimes[name] = func() clabruntime.ContainerRuntime { return r }
	}
	clabruntime.Register(Name, func() clabruntime.ContainerRuntime { return r })
}

// Init applies containerlab's options.
func (r *Runtime) Init(opts ...clabruntime.RuntimeOption) error {
	for _, o := range opts {
		o(r)
	}
	return nil
}

func (r *Runtime) Mgmt() *clabtypes.MgmtNet { return r.mgmt }

func (r *Runtime) WithConfig(c *clabruntime.RuntimeConfig) { r.config = *c }

func (r *Runtime) WithMgmtNet(m *clabtypes.MgmtNet) { r.mgmt = m }

func (r *Runtime) WithKeepMgmtNet() { r.config.KeepMgmtNet = true }

// CreateNet completes the management network, which templates read.
func (r *Runtime) CreateNet(context.Context) error {
	if r.mgmt == nil {
		return errors.New("there is no management network to complete")
	}
	r.mgmt.Bridge, r.mgmt.MTU = r.facts.Bridge, r.facts.MTU
	r.mgmt.IPv4Gw, r.mgmt.IPv6Gw = r.facts.IPv4Gw, r.facts.IPv6Gw
	return nil
}

func (r *Runtime) DeleteNet(context.Context) error { return nil }

func (r *Runtime) PullImage(context.Context, string, clabtypes.PullPolicyValue) error { return nil }

// CreateContainer takes a snapshot, since hooks go on changing the configuration.
func (r *Runtime) CreateContainer(_ context.Context, cfg *clabtypes.NodeConfig) (string, error) {
	snapshot, err := clone(cfg)
	if err != nil {
		return "", fmt.Errorf("container %s: %w", cfg.LongName, err)
	}
	r.Created = append(r.Created, Container{Name: cfg.LongName, Config: *snapshot})
	return cfg.LongName, nil
}

// clone copies what JSON carries, and the key that it leaves out.
func clone(cfg *clabtypes.NodeConfig) (*clabtypes.NodeConfig, error) {
	data, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	out := &clabtypes.NodeConfig{}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, err
	}
	out.TLSKey = cfg.TLSKey
	out.Credentials = cfg.Credentials
	return out, nil
}

func (r *Runtime) StartContainer(context.Context, string, clabruntime.Node) (any, error) {
	return nil, nil
}

func (r *Runtime) StopContainer(context.Context, string, clabtypes.Signal) error { return nil }

func (r *Runtime) PauseContainer(context.Context, string) error { return nil }

func (r *Runtime) UnpauseContainer(context.Context, string) error { return nil }

func (r *Runtime) DeleteContainer(context.Context, string) error { return nil }

// ListContainers lists what was created, with the node's management addresses.
func (r *Runtime) ListContainers(_ context.Context, filters []*clabtypes.GenericFilter) ([]clabruntime.GenericContainer, error) {
	var out []clabruntime.GenericContainer
	for _, c := range r.Created {
		if !matches(c, filters) {
			continue
		}
		gc := clabruntime.GenericContainer{
			Names: []string{c.Name}, ID: c.Name, ShortID: c.Name, Image: c.Config.Image, State: "running", Status: "Up",
			Labels: c.Config.Labels, NetworkName: r.mgmt.Network,
			NetworkSettings: clabruntime.GenericMgmtIPs{
				IPv4addr: r.facts.IPv4Addr, IPv4pLen: r.facts.IPv4Bits, IPv4Gw: r.facts.IPv4Gw,
				IPv6addr: r.facts.IPv6Addr, IPv6pLen: r.facts.IPv6Bits, IPv6Gw: r.facts.IPv6Gw,
			},
		}
		gc.SetRuntime(r)
		out = append(out, gc)
	}
	return out, nil
}

func matches(c Container, filters []*clabtypes.GenericFilter) bool {
	for _, f := range filters {
		if f.FilterType == "name" && strings.Trim(f.Match, "^$") != c.Name {
			return false
		}
	}
	return true
}

// GetNSPath is the planner's own namespace, which the sandbox gives an eth0.
func (r *Runtime) GetNSPath(context.Context, string) (string, error) { return "/proc/self/ns/net", nil }

func (r *Runtime) LogNonRunningContainerOutput(context.Context, string) {}

// Exec records a command and answers that it succeeded, with the output that
// Facts.Answer has for it.
func (r *Runtime) Exec(_ context.Context, id string, cmd *clabexec.ExecCmd) (*clabexec.ExecResult, error) {
	answer := ""
	if r.facts.Answer != nil {
		answer = r.facts.Answer(cmd.GetCmd())
	}
	r.Ops = append(r.Ops, Op{Phase: r.Phase, Container: id, Exec: cmd.GetCmd(), Answer: answer})
	result := clabexec.NewExecResult(cmd)
	result.SetStdOut([]byte(answer))
	return result, nil
}

func (r *Runtime) ExecNotWait(_ context.Context, id string, cmd *clabexec.ExecCmd) error {
	r.Ops = append(r.Ops, Op{Phase: r.Phase, Container: id, Exec: cmd.GetCmd(), Detach: true})
	return nil
}

func (r *Runtime) Config() clabruntime.RuntimeConfig {
	config := r.config
	config.VerifyLinkParams = &clablinks.VerifyLinkParams{}
	return config
}

func (r *Runtime) GetName() string { return Name }

// GetHostsPath is a file that hooks may append to; the sidecar writes the real one.
func (r *Runtime) GetHostsPath(_ context.Context, id string) (string, error) {
	name := filepath.Join(r.facts.HostsDir, filepath.Base(id))
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return "", err
	}
	return name, file.Close()
}

func (r *Runtime) GetContainerStatus(context.Context, string) clabruntime.ContainerStatus {
	return clabruntime.Running
}

func (r *Runtime) IsHealthy(context.Context, string) (bool, error) { return true, nil }

func (r *Runtime) WriteToStdinNoWait(_ context.Context, id string, data []byte) error {
	r.Ops = append(r.Ops, Op{Phase: r.Phase, Container: id, Stdin: append([]byte{}, data...)})
	return nil
}

func (r *Runtime) CheckConnection(context.Context) error { return nil }

func (r *Runtime) GetRuntimeSocket() (string, error) {
	return "", errors.New("the recording runtime has no socket")
}

func (r *Runtime) GetCooCBindMounts() clabtypes.Binds { return nil }

func (r *Runtime) StreamLogs(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("")), nil
}

func (r *Runtime) StreamEvents(context.Context, clabruntime.EventStreamOptions) (<-chan clabruntime.ContainerEvent, <-chan error, error) {
	return nil, nil, errors.New("the recording runtime has no events")
}

func (r *Runtime) InspectImage(_ context.Context, image string) (*clabruntime.ImageInspect, error) {
	return &clabruntime.ImageInspect{ID: image, Config: clabruntime.ImageConfig{Labels: r.facts.ImageLabels}}, nil
}

// CopyToContainer records the bytes of src at dst.
func (r *Runtime) CopyToContainer(_ context.Context, id, dst, src string) error {
	data, err := os.ReadFile(src)
	if err != nil {
		return err
	}
	r.Ops = append(r.Ops, Op{Phase: r.Phase, Container: id, Copy: &Copy{Path: dst, Content: data}})
	return nil
}
