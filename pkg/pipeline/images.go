package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/documents"
	"github.com/c9s-lab/c9s/pkg/image"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/render"
)

// Images says what to ask the registries.
type Images struct {
	// Resolve requires that every image exists. Pin also replaces tags with digests.
	Resolve, Pin bool
	// Platform is the platform that images must have, such as linux/amd64.
	Platform string
	// Mirrors are registry hosts and what to ask instead; Insecure are hosts to reach by
	// plain HTTP.
	Mirrors  map[string]string
	Insecure []string
	// CA holds certificates in PEM that are trusted beside the system's, and HostCAs those
	// for single hosts.
	CA      []byte
	HostCAs map[string][]byte
}

// maxRegistryRequests limits parallel requests to registries.
const maxRegistryRequests = 8

// apply maps and resolves the images of the plans in place. resolved reports whether it
// did, so that the image rules must not be applied again.
func (o Images) apply(ctx context.Context, l *lab.Lab, plans map[string]*plan.Plan, rules []render.ImageRule) (diags []diag.Diagnostic, resolved bool, err error) {
	if !o.Resolve && !o.Pin {
		return nil, false, nil
	}
	resolver := &image.Resolver{Platform: o.Platform, Insecure: o.Insecure, Mirrors: o.Mirrors, CacheDir: cacheDir("images")}
	if len(o.CA) > 0 || len(o.HostCAs) > 0 {
		if resolver.Transport, err = image.Trusting(o.CA, o.HostCAs); err != nil {
			return nil, false, fmt.Errorf("certificate authorities of registries: %w", err)
		}
	}
	users := map[string][]*lab.Node{}
	for _, n := range l.Nodes {
		for i := range plans[n.Name].Containers {
			c := &plans[n.Name].Containers[i]
			c.Image = render.MapImage(rules, c.Image)
			users[c.Image] = append(users[c.Image], n)
		}
	}
	infos, failed := resolveAll(ctx, resolver, slices.Sorted(maps.Keys(users)))
	var problems diag.List
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		for _, n := range users[name] {
			problems.Errorf(codeImage, n.Pos, "correct the image, log in to its registry, or map it with --map-image", "node %q: %v", n.Name, failed[name])
		}
	}
	for _, n := range l.Nodes {
		o.fill(plans[n.Name], n, infos, &problems)
	}
	return problems.All(), true, nil
}

// with adds what documents say of registries.
func (o Images) with(registries []documents.Registry) Images {
	o.HostCAs = maps.Clone(o.HostCAs)
	for _, r := range registries {
		if r.PlainHTTP {
			o.Insecure = append(slices.Clone(o.Insecure), r.Host)
		}
		if len(r.CA) > 0 {
			if o.HostCAs == nil {
				o.HostCAs = map[string][]byte{}
			}
			o.HostCAs[r.Host] = r.CA
		}
	}
	return o
}

// resolveAll resolves the images in parallel.
func resolveAll(ctx context.Context, r *image.Resolver, names []string) (map[string]image.Info, map[string]error) {
	var mu sync.Mutex
	infos, failed := map[string]image.Info{}, map[string]error{}
	bounded.Each(len(names), maxRegistryRequests, func(i int) {
		info, err := r.Resolve(ctx, names[i])
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed[names[i]] = err
		} else {
			infos[names[i]] = info
		}
	})
	return infos, failed
}

// fill sets the digests of a plan's images and the healthcheck of the first one.
func (o Images) fill(p *plan.Plan, n *lab.Node, infos map[string]image.Info, diags *diag.List) {
	for i := range p.Containers {
		c := &p.Containers[i]
		info, ok := infos[c.Image]
		if !ok {
			continue
		}
		if h := info.Healthcheck; h != nil && i == 0 && p.Readiness == nil && len(h.Test) > 0 && h.Test[0] != "NONE" {
			p.Readiness = &plan.Readiness{Reason: "image", Healthcheck: lab.Healthcheck{
				Test: h.Test, Interval: seconds(h.Interval), Timeout: seconds(h.Timeout), StartPeriod: seconds(h.StartPeriod), Retries: h.Retries,
			}}
		}
		if o.Pin {
			pinned, err := image.Pin(c.Image, info.Digest)
			if err != nil {
				diags.Errorf(codePin, n.Pos, "correct the image", "node %q: %v", n.Name, err)
				continue
			}
			c.Image = pinned
		}
	}
}

// seconds rounds up, so that a short time does not become none.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
