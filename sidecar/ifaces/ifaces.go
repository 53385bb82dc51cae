// Package ifaces prints the interfaces of a Pod's devices, and what becomes of them.
package ifaces

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// factsOf describes a link.
func factsOf(link netlink.Link) contract.InterfaceFacts {
	a := link.Attrs()
	f := contract.InterfaceFacts{Name: a.Name, Alias: a.Alias, Index: a.Index, MTU: a.MTU, Type: link.Type(), State: a.OperState.String()}
	if len(a.HardwareAddr) > 0 {
		f.MAC = a.HardwareAddr.String()
	}
	if s := a.Statistics; s != nil {
		f.Counters = contract.InterfaceCounters{
			RxBytes: s.RxBytes, TxBytes: s.TxBytes, RxPackets: s.RxPackets, TxPackets: s.TxPackets,
			RxErrors: s.RxErrors, TxErrors: s.TxErrors, RxDropped: s.RxDropped, TxDropped: s.TxDropped,
		}
	}
	return f
}

// list returns the interfaces of the present network namespace.
func list() ([]contract.InterfaceFacts, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the interfaces: %w", err)
	}
	out := make([]contract.InterfaceFacts, 0, len(links))
	for _, link := range links {
		out = append(out, factsOf(link))
	}
	return out, nil
}

// Elsewhere returns the interfaces that the sidecar knows and that are not in a list.
func Elsewhere(known []api.Interface, here []contract.InterfaceFacts) []contract.InterfaceFacts {
	there := map[string]bool{}
	for _, f := range here {
		there[f.Name] = true
	}
	var out []contract.InterfaceFacts
	for _, in := range known {
		if there[in.Name] || there[in.Linux] && in.Linux != "" {
			continue
		}
		f := contract.InterfaceFacts{Name: in.Name, Node: in.Node, MAC: in.MAC, Index: in.Index, MTU: in.MTU, Type: "veth", State: "down"}
		switch {
		case in.Up && in.Carrier:
			f.State = "up"
		case in.State == api.StateElsewhere:
			f.State = "unknown"
		}
		out = append(out, f)
	}
	return out
}

// Print prints each interface as a line. known is what the sidecar says of itself.
func Print(w io.Writer, known api.Status) error {
	here, err := list()
	if err != nil {
		return err
	}
	impairments := Impairments(known.Impairments())
	for i := range here {
		here[i].Impairment = impairments.of(here[i].Name)
	}
	return snapshot(json.NewEncoder(w), append(here, Elsewhere(known.Interfaces, here)...))
}

func snapshot(out *json.Encoder, list []contract.InterfaceFacts) error {
	now := time.Now()
	for _, f := range list {
		if err := out.Encode(contract.InterfaceEvent{Time: now, Action: contract.ActionSnapshot, Interface: f}); err != nil {
			return err
		}
	}
	return nil
}

// Impairments are what is done to the frames that interfaces send, by name.
type Impairments map[string]contract.Impairment

// Watch prints each interface, then ActionKnown, and then every change until ctx is done. With
// an interval it also prints the counters that often. now are the present impairments; what
// comes by changes replaces them.
func Watch(ctx context.Context, w io.Writer, interval time.Duration, now Impairments, changes <-chan Impairments) error {
	done := make(chan struct{})
	defer close(done)
	updates := make(chan netlink.LinkUpdate, 256)
	failed := make(chan error, 1)
	err := netlink.LinkSubscribeWithOptions(updates, done, netlink.LinkSubscribeOptions{ErrorCallback: func(err error) {
		select {
		case failed <- err:
		default:
		}
	}})
	if err != nil {
		return fmt.Errorf("subscribe to changes of interfaces: %w", err)
	}
	present, err := list()
	if err != nil {
		return err
	}
	watch := &watcher{out: json.NewEncoder(w), known: map[int]contract.InterfaceFacts{}, impairments: now}
	for i, f := range present {
		watch.known[f.Index] = still(f)
		present[i].Impairment = now.of(f.Name)
	}
	if err := snapshot(watch.out, present); err != nil {
		return err
	}
	if err := watch.out.Encode(contract.InterfaceEvent{Time: time.Now(), Action: contract.ActionKnown}); err != nil {
		return err
	}
	var tick <-chan time.Time
	if interval > 0 {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return fmt.Errorf("changes of interfaces: %w", err)
		case u, ok := <-updates:
			if !ok {
				return nil
			}
			err = watch.update(u)
		case next := <-changes:
			err = watch.impair(next)
		case <-tick:
			err = watch.stats()
		}
		if err != nil {
			return err
		}
	}
}

// watcher knows the interfaces without their counters.
type watcher struct {
	out         *json.Encoder
	known       map[int]contract.InterfaceFacts
	impairments Impairments
}

func (m Impairments) of(name string) *contract.Impairment {
	if i, ok := m[name]; ok {
		return &i
	}
	return nil
}

// impair prints the interfaces whose impairment has changed.
func (w *watcher) impair(next Impairments) error {
	before := w.impairments
	w.impairments = next
	for _, index := range slices.Sorted(maps.Keys(w.known)) {
		f := w.known[index]
		was, is := before.of(f.Name), next.of(f.Name)
		if was == is || was != nil && is != nil && *was == *is {
			continue
		}
		f.Impairment = is
		if err := w.out.Encode(contract.InterfaceEvent{Time: time.Now(), Action: contract.ActionUpdate, Interface: f}); err != nil {
			return err
		}
	}
	return nil
}

func still(f contract.InterfaceFacts) contract.InterfaceFacts {
	f.Counters = contract.InterfaceCounters{}
	return f
}

// update prints a change. The kernel also reports what changes nothing that is shown.
func (w *watcher) update(u netlink.LinkUpdate) error {
	f := factsOf(u.Link)
	before, was := w.known[f.Index]
	event := contract.InterfaceEvent{Time: time.Now(), Interface: f}
	event.Interface.Impairment = w.impairments.of(f.Name)
	switch {
	case u.Header.Type == unix.RTM_DELLINK:
		if !was || u.IfInfomsg.Family == unix.AF_BRIDGE { // that is a port leaving a bridge
			return nil
		}
		event.Action = contract.ActionDelete
		delete(w.known, f.Index)
		return w.out.Encode(event)
	case u.IfInfomsg.Family == unix.AF_BRIDGE, was && before == still(f):
		return nil
	case was:
		event.Action = contract.ActionUpdate
	default:
		event.Action = contract.ActionCreate
	}
	w.known[f.Index] = still(f)
	return w.out.Encode(event)
}

func (w *watcher) stats() error {
	present, err := list()
	if err != nil {
		return err
	}
	now := time.Now()
	for _, f := range present {
		f.Impairment = w.impairments.of(f.Name)
		if err := w.out.Encode(contract.InterfaceEvent{Time: now, Action: contract.ActionStats, Interface: f}); err != nil {
			return err
		}
	}
	return nil
}
