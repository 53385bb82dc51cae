// Package measure tests a Pod's links and paths for c9s test: it exchanges frames with the far
// ends of links, pings, traces and looks up names. It runs as a process of its own in the
// sidecar's container, so that nothing is needed in the images of devices.
package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/hold"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// The largest request, and what it may ask for.
const (
	maxRequest = 4 << 20
	maxParts   = 4096
)

// Pod is where a measurement takes place. Its process is in the device's network namespace.
type Pod struct {
	// Mgmt is nil for a Pod without a management interface.
	Mgmt *contract.Mgmt
	// Own returns the sidecar's network namespace.
	Own func() (*nspace.Namespace, error)
	// Hosts is the devices' hosts file.
	Hosts string
}

// Run is the subcommand: it reads a request from in and writes the measurement to out. dir is
// the supervisor's folder.
func Run(ctx context.Context, dir, linksFile string, in io.Reader, out io.Writer) error {
	var r contract.MeasureRequest
	if err := json.NewDecoder(io.LimitReader(in, maxRequest)).Decode(&r); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	if len(r.Pings) > maxParts || len(r.Traces) > maxParts || len(r.Names) > maxParts || r.Frames != nil && len(r.Frames.Interfaces) > maxParts {
		return fmt.Errorf("the request has more than %d parts of a kind", maxParts)
	}
	mgmt, err := contract.ReadMgmt(linksFile)
	if err != nil {
		return err
	}
	p := &Pod{Mgmt: mgmt, Own: func() (*nspace.Namespace, error) { return hold.Own(dir) }, Hosts: "/etc/hosts"}
	return json.NewEncoder(out).Encode(p.Measure(ctx, r))
}

// Measure does what a request asks for.
func (p *Pod) Measure(ctx context.Context, r contract.MeasureRequest) contract.Measurement {
	m := contract.Measurement{
		Pings: make([]contract.PingResult, len(r.Pings)), Traces: make([]contract.TraceResult, len(r.Traces)),
	}
	var group sync.WaitGroup
	if r.Frames != nil {
		group.Go(func() { m.Frames = exchange(ctx, r.Frames) })
	}
	for i, ping := range r.Pings {
		group.Go(func() { m.Pings[i] = p.ping(ctx, ping) })
	}
	for i, trace := range r.Traces {
		group.Go(func() { m.Traces[i] = p.trace(ctx, trace) })
	}
	if len(r.Names) > 0 {
		group.Go(func() { m.Names = p.lookUp(ctx, r.Names) })
	}
	if r.Addresses {
		m.Addresses = addresses()
	}
	group.Wait()
	return m
}

// addresses returns the addresses of all interfaces but loopback and link-local ones.
func addresses() (out []netip.Addr) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && !prefix.Addr().IsLoopback() && !prefix.Addr().IsLinkLocalUnicast() {
			out = append(out, prefix.Addr().Unmap())
		}
	}
	return out
}

// lookUp finds names in the devices' hosts file, and else by DNS.
func (p *Pod) lookUp(ctx context.Context, names []string) []contract.NameResult {
	known := hostsFile(p.Hosts)
	out := make([]contract.NameResult, len(names))
	for i, name := range names {
		if found := known[name]; len(found) > 0 {
			out[i].Addresses = found
			continue
		}
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		var dnsError *net.DNSError
		switch {
		case errors.As(err, &dnsError) && dnsError.IsNotFound:
			out[i].Error = "it is in neither the hosts file nor DNS"
		case err != nil:
			out[i].Error = err.Error()
		}
		for _, a := range found {
			out[i].Addresses = append(out[i].Addresses, a.Unmap())
		}
		slices.SortFunc(out[i].Addresses, netip.Addr.Compare)
	}
	return out
}
