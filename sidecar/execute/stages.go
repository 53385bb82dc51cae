package execute

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// askInterval is how often the own sidecar is asked for the stages of others.
const askInterval = 500 * time.Millisecond

// waitFor asks until the stages of other nodes are over.
func (r *runner) waitFor(ctx context.Context, index int, waits []contract.WaitFor) error {
	for _, w := range waits {
		r.results.set(contract.StepResult{Index: index, Running: true, Output: fmt.Sprintf("waiting for %s of node %s", w.Stage, w.Node)})
		for !r.over(ctx, w) {
			select {
			case <-time.After(askInterval):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	var names []string
	for _, w := range waits {
		names = append(names, w.Stage+" of node "+w.Node)
	}
	r.results.set(contract.StepResult{Index: index, Output: "waited for " + strings.Join(names, ", ")})
	return nil
}

func (r *runner) over(ctx context.Context, w contract.WaitFor) bool {
	query := url.Values{"pod": {w.Pod}, "node": {w.Node}, "stage": {w.Stage}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.stages+"?"+query.Encode(), nil)
	if err != nil {
		return false
	}
	res, err := r.sidecar.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusNoContent
}
