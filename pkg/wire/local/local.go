//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"sync"

	"github.com/c9s-lab/c9s/internal/accept"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// redirectPriority is before that of vxlan and of the program that drops.
const redirectPriority = 90

// clientsAtOnce bounds the greetings at a time.
const clientsAtOnce = 16

// Config is what a Datapath needs.
type Config struct {
	// Folder is the descriptor of the worker's folder; 0 for none.
	Folder int
	// Namespace is the descriptor of the network namespace, which neighbours get.
	Namespace int
	Lab, Pod  string
	Key       []byte
	Epoch     uint64
	Log       *slog.Logger
}

// Datapath is the veth pairs between a Pod and its neighbours on the worker.
type Datapath struct {
	Config
	h *netlink.Handle
	// namespaces are those of neighbours, for one round: they would end later otherwise.
	namespaces map[party]*os.File
	end        context.CancelFunc
	serving    sync.WaitGroup

	mu     sync.Mutex
	why    string // it cannot be used
	folder *folder
	// devices are the interfaces that carry frames, by their index, and what is lost with
	// them.
	devices map[int]datapath.Loss
}

// New returns a datapath that is not used before Start.
func New(c Config) *Datapath {
	return &Datapath{Config: c, why: "it has not started", namespaces: map[party]*os.File{}, devices: map[int]datapath.Loss{}}
}

// Start makes the Pod's socket in the worker's folder.
func (d *Datapath) Start() error {
	why, err := d.start()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.why = why
	return err
}

func (d *Datapath) start() (why string, err error) {
	switch {
	case d.Folder == 0:
		return "the Pod has no folder of the worker", nil
	case len(d.Key) == 0:
		return "the lab has no key", nil
	}
	fd, err := datapath.RedirectToPeer(1).Load()
	if err != nil {
		return "the kernel has no redirect to the peer of a veth (Linux 5.10)", nil
	}
	unix.Close(fd)
	name, keys, err := deriveKeys(d.Key, d.Lab)
	if err != nil {
		return err.Error(), err
	}
	f, l, err := publish(d.Folder, name, keys, d.Pod, d.Epoch)
	if err != nil {
		return err.Error(), err
	}
	d.mu.Lock()
	d.folder = f
	d.mu.Unlock()
	ctx, end := context.WithCancel(context.Background())
	d.end = end
	d.serving.Go(func() {
		accept.Each(ctx, l, clientsAtOnce, func(c net.Conn) {
			if err := serve(c.(*net.UnixConn), keys.greet, d.self(), d.Namespace); err != nil {
				d.Log.Debug("a neighbour's greeting", "error", err)
			}
		})
	})
	return "", nil
}

func (d *Datapath) self() party { return party{d.Pod, d.Epoch} }

// Close removes the socket. What carries frames stays.
func (d *Datapath) Close() error {
	if d.end == nil {
		return nil
	}
	d.end()
	d.serving.Wait()
	d.forget()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.why = "it has ended"
	d.folder.remove(d.folder.socket(d.Pod, d.Epoch))
	d.folder.sweep()
	d.end = nil
	return d.folder.dir.Close()
}

// Open implements datapath.Datapath.
func (d *Datapath) Open(h *netlink.Handle) error {
	d.h = h
	return nil
}

// Wanted implements datapath.Datapath. A peer is a neighbour if the process of its session
// has a socket in the folder.
func (d *Datapath) Wanted(c datapath.Conditions) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.why != "":
		return d.why
	case c.Impaired:
		return "impaired"
	case c.Encrypted:
		return "encrypted"
	case c.Plain:
		return "checksums are finished here"
	case !d.folder.has(d.folder.socket(c.Peer.Pod, c.Peer.Epoch)):
		return "the peer is not on this worker"
	}
	return ""
}

// The side of a pair by which a wire's end receives, and the one in the neighbour's
// namespace, by which that sends; ids have at most 8 digits.
func receiver(id contract.WireID) string { return fmt.Sprintf("c9si%d", id) }
func sender(id contract.WireID) string   { return fmt.Sprintf("c9so%d", id) }

// Ensure makes a pair across the two namespaces, and joins what arrives by it to the leg.
// Its far side stays down, which no frame to the neighbour needs: so nothing goes back by it.
func (d *Datapath) Ensure(l datapath.Leg, _ netip.Addr) error {
	d.unredirect(l.Index)
	d.delete(l.Wire)
	namespace, err := d.namespace(party{l.Peer.Pod, l.Peer.Epoch})
	if err != nil {
		return fmt.Errorf("meeting Pod %s on this worker: %w", l.Peer.Pod, err)
	}
	if err := removeIn(namespace, sender(l.Wire)); err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = receiver(l.Wire), 65535
	attrs.NumTxQueues, attrs.NumRxQueues = 1, 1 // not one for each processor, which redirects do not use
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: sender(l.Wire), PeerNamespace: netlink.NsFd(int(namespace.Fd()))}
	link, err := datapath.AddDevice(d.h, pair)
	if err != nil {
		return err
	}
	index := link.Attrs().Index
	if err := d.redirect(index, datapath.Redirect(l.Index)); err != nil {
		return err
	}
	if err := datapath.SetUp(d.h, link); err != nil {
		return err
	}
	d.uses(index, datapath.Loss{Wire: l.Wire, Receive: true})
	return nil
}

// Send switches the redirect of the leg to the neighbour's pair.
func (d *Datapath) Send(l datapath.Leg, on bool) bool {
	if l.Sock == nil {
		return false
	}
	if !on {
		d.unredirect(l.Index)
		l.Sock.Accept(true)
		return false
	}
	link, err := d.h.LinkByName(sender(l.Wire))
	if err != nil {
		return false
	}
	index := link.Attrs().Index
	d.uses(index, datapath.Loss{Wire: l.Wire})
	l.Sock.Accept(false)
	if err := d.redirect(l.Index, datapath.RedirectToPeer(index)); err != nil {
		d.Log.Warn("frames stay on udp", "wire", l.Wire, "error", err)
		l.Sock.Accept(true)
		return false
	}
	return true
}

// Remove deletes the pair and the redirects.
func (d *Datapath) Remove(l datapath.Leg) {
	if l.Index != 0 {
		d.unredirect(l.Index)
	}
	d.delete(l.Wire)
}

// Finish gives back the neighbours' namespaces.
func (d *Datapath) Finish() error {
	d.forget()
	return nil
}

// Lost implements datapath.Watcher.
func (d *Datapath) Lost(gone func(index int) bool) (all []datapath.Loss) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for index, loss := range d.devices {
		if gone(index) {
			all = append(all, loss)
			delete(d.devices, index)
		}
	}
	return all
}

func (d *Datapath) uses(index int, loss datapath.Loss) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.devices[index] = loss
}

// namespace gets the network namespace of a neighbour, once a round.
func (d *Datapath) namespace(p party) (*os.File, error) {
	if f := d.namespaces[p]; f != nil {
		return f, nil
	}
	d.mu.Lock()
	folder := d.folder
	d.mu.Unlock()
	if folder == nil {
		return nil, errors.New("no folder of the worker")
	}
	c, err := folder.dial(folder.socket(p.pod, p.epoch))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	f, err := greet(c, folder.keys.greet, d.self(), p)
	if err == nil {
		d.namespaces[p] = f
	}
	return f, err
}

func (d *Datapath) forget() {
	for p, f := range d.namespaces {
		f.Close()
		delete(d.namespaces, p)
	}
}

// removeIn deletes an interface of another namespace: the kernel deletes those of a Pod that
// has ended a moment later.
func removeIn(namespace *os.File, name string) error {
	h, err := netlink.NewHandleAt(netns.NsHandle(namespace.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("the neighbour's network namespace: %w", err)
	}
	defer h.Close()
	link, err := h.LinkByName(name)
	if err != nil {
		if datapath.LinkGone(err) {
			return nil
		}
		return fmt.Errorf("finding %s of an earlier process: %w", name, err)
	}
	if err := h.LinkDel(link); err != nil && !datapath.LinkGone(err) {
		return fmt.Errorf("deleting %s of an earlier process: %w", name, err)
	}
	return nil
}

func (d *Datapath) redirect(from int, p datapath.Program) error {
	fd, err := p.Load()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return datapath.OnIngress(d.h, from, redirectPriority, fd, "c9s-local")
}

func (d *Datapath) unredirect(from int) {
	if err := datapath.NotOnIngress(d.h, from, redirectPriority); err != nil {
		d.Log.Debug("a redirect stays", "error", err)
	}
}

// delete deletes the pair by which a wire's end receives. Nobody need be told.
func (d *Datapath) delete(id contract.WireID) {
	d.mu.Lock()
	maps.DeleteFunc(d.devices, func(_ int, loss datapath.Loss) bool { return loss.Wire == id })
	d.mu.Unlock()
	name := receiver(id)
	if err := datapath.DeleteDevice(d.h, name); err != nil {
		d.Log.Warn("a veth stays", "interface", name, "error", err)
	}
}
