package cli

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/image"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/render"
	"github.com/spf13/cobra"
)

// Diagnostics of asking registries.
// Codes of the images of a lab.
var (
	codeImage = diag.Declare("image-unresolved", diag.Explanation{Stage: diag.StageImages,
		Text:   "a registry does not have an image, or does not answer (--resolve-images, --pin)",
		Cause:  "The reference is misspelt, the registry requires a login, or it is unreachable.",
		Remedy: "Correct the image, log in to its registry, or map it with --map-image."})
	codePin = diag.Declare("image-pin", diag.Explanation{Stage: diag.StageImages,
		Text:   "an image reference cannot be pinned to its digest (--pin)",
		Cause:  "The reference cannot take a digest.",
		Remedy: "Correct the image."})
)

// imageFlags ask registries about the images of a lab.
type imageFlags struct {
	resolve  bool
	pin      bool
	platform string
	mirrors  []string
	insecure []string
}

func (f *imageFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.resolve, "resolve-images", false, "ask the registries: every image must be there; an image's own healthcheck becomes the readiness probe")
	fs.BoolVar(&f.pin, "pin", false, "write images with their digests (asks the registries)")
	fs.StringVar(&f.platform, "platform", "linux/amd64", "platform that the images must have, with --resolve-images or --pin")
	fs.StringArrayVar(&f.mirrors, "registry-mirror", nil, "HOST=MIRROR: ask MIRROR in place of the registry HOST (repeatable)")
	fs.StringSliceVar(&f.insecure, "insecure-registry", nil, "registry hosts to reach by plain HTTP")
}

// maxRegistryRequests is how many images are asked for at once.
const maxRegistryRequests = 8

// apply resolves the images of all plans, after the image map, and puts what it
// learns into the plans. mapped tells that it has, and that the image map must
// not be applied to them again.
func (f *imageFlags) apply(ctx context.Context, l *lab.Lab, plans map[string]*plan.Plan, rules []render.ImageRule) (diags []diag.Diagnostic, mapped bool, err error) {
	if !f.resolve && !f.pin {
		return nil, false, nil
	}
	mirrors, err := parsePairs("registry-mirror", f.mirrors)
	if err != nil {
		return nil, false, err
	}
	resolver := &image.Resolver{Platform: f.platform, Insecure: f.insecure, Mirrors: mirrors}
	if cache, err := os.UserCacheDir(); err == nil {
		resolver.CacheDir = filepath.Join(cache, "c9s", "images")
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
		f.fill(plans[n.Name], n, infos, &problems)
	}
	return problems.All(), true, nil
}

// resolveAll asks for each image, a bounded number at once.
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

// fill gives a plan its images' digests and healthcheck.
func (f *imageFlags) fill(p *plan.Plan, n *lab.Node, infos map[string]image.Info, diags *diag.List) {
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
		if f.pin {
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
