package measure

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/c9s-lab/c9s/pkg/contract"
)

const (
	mostHops = 30
	// Each hop gets several requests: routers limit how many errors they report.
	tries    = 3
	traceGap = 300 * time.Millisecond
)

// trace finds the routers on the way to an address. The number of a request is its hop limit.
func (p *Pod) trace(ctx context.Context, r contract.TraceRequest) (result contract.TraceResult) {
	hops := min(max(r.Hops, 1), mostHops)
	e, err := p.dialEcho(r.To, netip.Addr{}, r.Device, false, false)
	if err != nil {
		result.Error = explain(err)
		return result
	}
	defer e.Close()
	var mu sync.Mutex
	by, last := make([]netip.Addr, hops+1), 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.answers(func(seq int, from netip.Addr, final bool) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case seq < 1 || seq > hops:
			case final && (last == 0 || seq < last):
				last, by[seq] = seq, from
			case !final:
				by[seq] = from
			}
		})
	}()
	for range tries {
		for hop := 1; hop <= hops && ctx.Err() == nil; hop++ {
			mu.Lock()
			known := by[hop].IsValid() || last > 0 && hop > last
			mu.Unlock()
			if known {
				continue
			}
			err := e.setHops(hop)
			if err == nil {
				err = e.send(hop, nil)
			}
			if err != nil {
				result.Error = explain(err)
			}
		}
		select {
		case <-time.After(traceGap):
		case <-ctx.Done():
		}
	}
	e.Close()
	<-done
	for hop := 1; hop <= hops; hop++ {
		if last > 0 && hop > last {
			break
		}
		result.Hops = append(result.Hops, by[hop])
	}
	for last == 0 && len(result.Hops) > 0 && !result.Hops[len(result.Hops)-1].IsValid() {
		result.Hops = result.Hops[:len(result.Hops)-1]
	}
	result.Arrived = last > 0
	if len(result.Hops) > 0 {
		result.Error = ""
	}
	return result
}

// setHops sets the hop limit of the requests that follow.
func (e *echo) setHops(n int) error {
	if e.to.Is6() {
		return ipv6.NewPacketConn(e.conn).SetHopLimit(n)
	}
	return ipv4.NewPacketConn(e.conn).SetTTL(n)
}
