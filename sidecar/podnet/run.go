package podnet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
	"github.com/c9s-lab/c9s/sidecar/dns"
	"github.com/c9s-lab/c9s/sidecar/link"
	"github.com/c9s-lab/c9s/sidecar/mgmt"
	"github.com/c9s-lab/c9s/sidecar/nspace"
	"github.com/c9s-lab/c9s/sidecar/resolve"
)

// The loop checks everything after a notification of a change, and every slowLook without
// one. Simultaneous notifications count as one. If a device flaps its own interfaces, the loop
// runs at most once every quickLook.
const (
	slowLook  = 10 * time.Second
	quickLook = 80 * time.Millisecond
	settle    = 5 * time.Millisecond
)

// stuckAfter is how long one pass of the loop may take before the sidecar counts
// as stuck.
const stuckAfter = time.Minute

// sidecar is the running thing.
type sidecar struct {
	cfg Config
	own *nspace.Namespace
	// nl is the handle of the sidecar's namespace, device that of the device's.
	nl       *netlink.Handle
	device   *netlink.Handle
	resolver *resolve.Resolver
	// conf is the Pod's resolv.conf, dns the device's resolver.
	conf    *dns.Conf
	dns     *dns.Server
	asker   *asker
	fabric  Fabric
	running *running
	boot    boot
	begun   time.Time

	// The loop's own, touched by nobody else.
	want       desired
	host       host
	underlay   *mgmt.Underlay
	guarded    bool // the cluster interface and the firewall are as they must be
	router     *mgmt.Router
	mesh       *mgmt.Mesh
	peers      *mgmt.Peers
	set        *link.Set
	proxied    proxies
	nextExpire time.Time
	faults     faults
	nextFault  time.Time // when a fault begins or ends; zero for none

	wake   poke
	logins chan struct{}
	begins atomic.Bool  // the startup probe has succeeded
	passAt atomic.Int64 // when the pass began, in ns since begun; 0 between passes

	mu     sync.Mutex
	now    view
	gate   *gate
	man    *contract.Manifest
	said   said
	news   news
	failed error
	when   time.Time
}

// view is what the last pass found.
type view struct {
	doc       *contract.Links
	digest    string
	states    []link.State
	held      bool
	mgmtMade  bool
	applied   bool
	complete  bool
	complaint string
}

// boot is kept in a file over restarts of the sidecar.
type boot struct {
	First    time.Time `json:"first"`
	Restarts int       `json:"restarts"`
}

// Run is the sidecar. It returns when ctx is done and leaves everything in place: the next
// process continues from there.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.defaults(); err != nil {
		return err
	}
	// Most of the time little memory is in use.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(48 << 20)
	}
	s, err := newSidecar(cfg)
	if err != nil {
		return err
	}
	defer s.close()
	return s.run(ctx)
}

func newSidecar(cfg Config) (*sidecar, error) {
	own, err := nspace.Current()
	if err != nil {
		return nil, err
	}
	nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	device, err := netlink.NewHandleAt(netns.NsHandle(cfg.Device.FD()), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink in the device's network namespace: %w", err)
	}
	s := &sidecar{cfg: cfg, own: own, nl: nl, device: device, wake: newPoke(), logins: make(chan struct{}, logins), begun: time.Now()}
	if s.conf, err = dns.Load(cfg.state("resolv.json"), cfg.ResolvConf); err != nil {
		return nil, err
	}
	s.resolver = resolve.New(s.conf.Servers, s.conf.Search)
	s.dns = dns.New(s.conf.Servers, cfg.Log)
	s.asker = newAsker(s.resolver)
	s.host.load(cfg.state("host.json"))
	s.underlay = mgmt.NewUnderlay(nl, device, own.FD(), cfg.state("underlay.json"), cfg.PodIPs)
	s.router = mgmt.NewRouter(nl, own.FD(), cfg.Device, device)
	s.set = link.NewSet(nl, own, device, link.Options{
		Device: cfg.Device, StateFile: cfg.state("interfaces.json"), HostNetNS: cfg.HostNetNS, Owner: cfg.Namespace + "/" + cfg.PodName,
		Underlay: mgmt.UnderlayName, Source: cfg.PodIPs, Resolve: s.resolver.Name,
	})
	return s, s.countBoot()
}

func (s *sidecar) countBoot() error {
	file := s.cfg.state("boot.json")
	data, err := os.ReadFile(file)
	if err == nil && json.Unmarshal(data, &s.boot) == nil && !s.boot.First.IsZero() {
		s.boot.Restarts++
	} else {
		s.boot = boot{First: s.begun}
	}
	if data, err = json.Marshal(s.boot); err != nil {
		return err
	}
	return link.WriteFile(file, data)
}

func (s *sidecar) close() {
	if s.peers != nil {
		s.peers.Close()
	}
	s.dns.Close()
	s.nl.Close()
	s.device.Close()
	s.own.Close()
}

func (s *sidecar) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var stops []func()
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	dirs := []string{s.cfg.LinksDir, s.cfg.DirectoryDir, s.cfg.HostsFile, filepath.Dir(s.cfg.KeyFile)}
	for _, watch := range []func() (func(), error){
		func() (func(), error) { return watchFiles(dirs, s.wake.poke) },
		func() (func(), error) { return watchLinks(s.own, s.wake.poke) },
		func() (func(), error) { return watchLinks(s.cfg.Device, s.wake.poke) },
	} {
		stop, err := watch()
		if err != nil {
			return err
		}
		stops = append(stops, stop)
	}
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	ends := make(chan error, 4)
	group.Go(func() { ends <- s.serve(ctx) })
	group.Go(func() { ends <- s.loop(ctx, &group, ends) })
	select {
	case <-ctx.Done():
		return nil
	case err := <-ends:
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
}

// loop runs a pass after every notification. It ends only with ctx: failures are reported
// and retried.
func (s *sidecar) loop(ctx context.Context, group *sync.WaitGroup, ends chan<- error) error {
	slow := time.NewTimer(0)
	defer slow.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
			time.Sleep(settle)
		case <-slow.C:
		}
		select {
		case <-s.wake:
		default:
		}
		s.passAt.Store(int64(max(1, time.Since(s.begun))))
		err := s.pass(ctx)
		s.passAt.Store(0)
		s.note(err)
		if s.guarded {
			s.note(s.keepFabric(ctx, group, ends))
		}
		if err != nil {
			slow.Reset(min(time.Second, s.patience()))
		} else {
			slow.Reset(s.patience())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(quickLook):
		}
	}
}

// patience is how long the loop waits for a notification.
func (s *sidecar) patience() time.Duration {
	if s.nextFault.IsZero() {
		return slowLook
	}
	return max(0, min(slowLook, time.Until(s.nextFault)))
}

// note keeps what went wrong last, and logs it once.
func (s *sidecar) note(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	again := s.failed != nil && s.failed.Error() == err.Error()
	s.failed, s.when = err, time.Now()
	s.mu.Unlock()
	if !again {
		s.cfg.Log.Error("pod network", "error", err)
	}
}

func (s *sidecar) manifest() *contract.Manifest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.man == nil {
		return &contract.Manifest{}
	}
	return s.man
}

// Bridge shows a bridge node, for the subcommand of that name. args are the node and what
// bridge(8) takes.
func Bridge(ctx context.Context, args []string) (string, error) {
	if len(args) == 3 && args[2] == "show" {
		args = args[:2]
	}
	if len(args) != 2 || !slices.Contains(link.BridgeObjects, args[1]) {
		return "", fmt.Errorf("bridge shows %s, and changes nothing: c9s exec NODE -- bridge OBJECT [show]", strings.Join(link.BridgeObjects, ", "))
	}
	c := Config{StateDir: contract.StateDir}
	return api.Bridge(ctx, c.state(contract.SocketFile), args[0], args[1])
}

// Status asks the sidecar of this Pod, for the subcommand of that name.
func Status(ctx context.Context) (api.Status, error) {
	c := Config{StateDir: contract.StateDir}
	return api.FetchSocket(ctx, c.state(contract.SocketFile))
}

// FollowStatus calls each with every new status of the sidecar of this Pod, until ctx is done.
// tag is that of the last known one.
func FollowStatus(ctx context.Context, tag string, each func(api.Status)) {
	c := Config{StateDir: contract.StateDir}
	client := api.SocketClient(c.state(contract.SocketFile))
	client.Timeout = 0 // it holds its answer until there is a new one
	for ctx.Err() == nil {
		s, changed, err := api.Follow(ctx, client, netip.AddrFrom4([4]byte{127, 0, 0, 1}), tag, func() {})
		switch {
		case err != nil:
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		case changed:
			tag = s.Tag()
			each(s)
		}
	}
}
