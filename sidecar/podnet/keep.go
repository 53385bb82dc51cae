package podnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/mgmt"
	"github.com/c9s-lab/c9s/sidecar/resolve"
)

// running is the fabric's own life within the sidecar's.
type running struct {
	key     []byte
	encrypt bool
	stop    context.CancelFunc
	done    chan struct{}
}

// keepFabric runs the wires with the lab's key. The key is in an optional Secret, which may
// be created after the Pod or replaced. The wires then restart, which interrupts them for a
// moment. Encrypted wires wait for a key.
func (s *sidecar) keepFabric(ctx context.Context, group *sync.WaitGroup, ends chan<- error) error {
	key, err := os.ReadFile(s.cfg.KeyFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the lab's wire key: %w", err)
	}
	if s.running != nil {
		// A key that is taken away stays in use: without it the wires are open.
		if len(key) == 0 {
			key = s.running.key
		}
		if bytes.Equal(key, s.running.key) && s.want.doc.Encrypt == s.running.encrypt {
			return nil
		}
		s.stopFabric()
	}
	if s.want.doc.Encrypt && len(key) == 0 {
		return errNoKey
	}
	return s.startFabric(ctx, key, group, ends)
}

var errNoKey = errors.New("the lab's wires are encrypted, and its wire key is not there: apply the Secret c9s-wire-key")

func (s *sidecar) stopFabric() {
	s.fabric.Leave()
	s.running.stop()
	<-s.running.done
	s.mu.Lock()
	s.fabric, s.running = nil, nil
	s.mu.Unlock()
	if s.peers != nil {
		s.peers.SetSessions(nil)
	}
}

// startFabric starts the wires. They need the cluster interface's final name.
func (s *sidecar) startFabric(ctx context.Context, key []byte, group *sync.WaitGroup, ends chan<- error) error {
	epoch, err := nextEpoch(s.cfg.state("epoch"), time.Now())
	if err != nil {
		return fmt.Errorf("start the wires: %w", err)
	}
	near := 0
	if s.cfg.Near != nil {
		near = int(s.cfg.Near.Fd())
	}
	f, err := s.cfg.NewFabric(wire.Options{
		Lab: s.cfg.Namespace + "/" + s.want.doc.Lab, Pod: s.want.doc.Pod, Port: contract.WirePort,
		Key: key, Encrypt: s.want.doc.Encrypt, Underlay: mgmt.UnderlayName, Device: s.cfg.Device.FD(), Folder: near,
		AskPort: contract.StatusPort, Epoch: epoch, Resolver: oneFamily{s.resolver, s.cfg.PodIPs[0].Is4()}, Log: s.cfg.Log,
	})
	if err != nil {
		return fmt.Errorf("start the wires: %w", err)
	}
	own, stop := context.WithCancel(ctx)
	r := &running{key: key, encrypt: s.want.doc.Encrypt, stop: stop, done: make(chan struct{})}
	s.mu.Lock()
	s.fabric, s.running = f, r
	s.mu.Unlock()
	group.Go(func() {
		defer close(r.done)
		defer stop()
		err := f.Run(own)
		err = errors.Join(err, f.Close())
		if own.Err() == nil {
			ends <- fmt.Errorf("the wires ended: %w", err)
		}
	})
	group.Go(func() {
		for {
			select {
			case <-own.Done():
				return
			case <-f.Changes():
				s.sessionsChanged()
				s.news.tell()
			}
		}
	})
	s.wake.poke()
	return nil
}

// sessionsChanged has the mesh follow its peers.
func (s *sidecar) sessionsChanged() {
	s.mu.Lock()
	peers := s.peers
	s.mu.Unlock()
	if peers != nil {
		peers.Apply()
	}
}

// oneFamily finds Pods at addresses of the family that the mesh has, where they have
// one: a session's address is where the mesh sends to.
type oneFamily struct {
	*resolve.Resolver
	v4 bool
}

// Lookup is wire.Resolver's.
func (r oneFamily) Lookup(ctx context.Context, pod string) ([]netip.Addr, error) {
	all, err := r.Resolver.Lookup(ctx, pod)
	var same []netip.Addr
	for _, a := range all {
		if a.Unmap().Is4() == r.v4 {
			same = append(same, a)
		}
	}
	if len(same) > 0 {
		return same, err
	}
	return all, err
}
