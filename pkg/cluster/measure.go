package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/c9s-lab/c9s/internal/foreign"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// firstLines is the beginning of what a program complains of, on one line.
func firstLines(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return text[:min(len(text), 300)]
}

// Measure lets the sidecar of a Deployment's present Pod measure its links and paths.
func (c *Client) Measure(ctx context.Context, lab Found, deployment string, r contract.MeasureRequest) (contract.Measurement, error) {
	var m contract.Measurement
	request, err := json.Marshal(r)
	if err != nil {
		return m, err
	}
	pod, err := c.Pod(ctx, lab.Namespace, deployment)
	if err != nil {
		return m, err
	}
	if !sidecarRuns(pod) {
		return m, fmt.Errorf("the sidecar of Pod %s is not running", pod.Name)
	}
	out, errOut := &Buffer{Limit: foreign.MaxStatus}, &Buffer{Limit: 1000}
	code, err := c.Exec(ctx, lab.Namespace, pod.Name, contract.WireContainer, []string{contract.SidecarProgram, "measure"}, Streams{In: bytes.NewReader(request), Out: out, Err: errOut})
	switch {
	case err != nil:
		return m, err
	case code == usageCode && strings.HasPrefix(errOut.String(), "Usage:"):
		return m, fmt.Errorf("the sidecar of Pod %s is of an older c9s and cannot measure: deploy the lab again", pod.Name)
	case code != 0:
		return m, fmt.Errorf("the sidecar of Pod %s: %s", pod.Name, firstLines(errOut.String()))
	}
	if err := foreign.JSON([]byte(out.String()), foreign.MaxElements, &m); err != nil {
		return m, fmt.Errorf("the sidecar of Pod %s: %w", pod.Name, err)
	}
	return m, nil
}
