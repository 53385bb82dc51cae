package podnet

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
	"github.com/c9s-lab/c9s/sidecar/link"
	"github.com/c9s-lab/c9s/sidecar/mgmt"
	"github.com/c9s-lab/c9s/sidecar/nft"
	"github.com/c9s-lab/c9s/sidecar/resolve"
	"github.com/c9s-lab/c9s/sidecar/xtables"
)

// The loop looks at everything after a notice of a change, and every slowLook
// without one. Notices that come at once are one; a device that flaps its own
// interfaces makes the loop run once every quickLook, no more.
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
	cfg      Config
	nl       *netlink.Handle
	resolver *resolve.Resolver
	asker    *asker
	fabric   Fabric
	running  *running
	boot     boot
	begun    time.Time

	// The loop's own, touched by nobody else.
	want       desired
	host       host
	underlay   *mgmt.Underlay
	underlaid  bool // the cluster interface is as it must be
	router     *mgmt.Router
	mesh       *mgmt.Mesh
	peers      *mgmt.Peers
	set        *link.Set
	proxied    proxies
	nextExpire time.Time

	wake   poke
	begins atomic.Bool  // the startup probe has succeeded
	passAt atomic.Int64 // when the pass began, ns since 1970; 0 between passes

	mu     sync.Mutex
	now    view
	gate   *gate
	man    *contract.Manifest
	said   said
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

// Run is the sidecar. It returns when ctx is done, and leaves everything in place
// then: the next one goes on where this one stopped.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.defaults(); err != nil {
		return err
	}
	if err := cfg.forgetOther(); err != nil {
		return err
	}
	// The container is limited to 64 MiB; most of the time little is in use.
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
	nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	s := &sidecar{cfg: cfg, nl: nl, wake: newPoke(), begun: time.Now()}
	s.resolver = resolve.New(cfg.ResolvConf, mgmt.MarkSocket)
	s.asker = newAsker(s.resolver)
	s.host.load(cfg.state("host.json"))
	s.underlay = mgmt.NewUnderlay(nl, cfg.state("underlay.json"), cfg.PodIPs)
	s.router = mgmt.NewRouter(nl, nil, cfg.PodIPs)
	s.set = link.NewSet(nl, link.Options{
		StateFile: cfg.state("interfaces.json"), HostNetNS: cfg.HostNetNS, Owner: cfg.Namespace + "/" + cfg.PodName,
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
	s.nl.Close()
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
		func() (func(), error) { return watchKernel(s.wake.poke) },
		func() (func(), error) { return nft.Watch(s.wake.poke) },
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
	group.Go(func() { xtables.Watch(ctx, s.wake.poke) })
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

// loop runs a pass after every notice. It ends only with ctx: what fails is told
// and tried again.
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
		s.passAt.Store(time.Now().UnixNano())
		err := s.pass(ctx)
		s.passAt.Store(0)
		s.note(err)
		if s.underlaid {
			s.note(s.keepFabric(ctx, group, ends))
		}
		if err != nil {
			slow.Reset(time.Second)
		} else {
			slow.Reset(slowLook)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(quickLook):
		}
	}
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

// markedClient is an HTTP client whose packets take the Pod's own routes.
func markedClient() *http.Client {
	dialer := &net.Dialer{Timeout: askPatience, Control: mgmt.MarkSocket}
	return &http.Client{Timeout: askPatience, Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10}}
}

// Status asks the sidecar of this Pod, for the subcommand of that name.
func Status(ctx context.Context) (api.Status, error) {
	return api.Fetch(ctx, nil, localhost)
}
