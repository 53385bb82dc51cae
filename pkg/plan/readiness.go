package plan

import (
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// ImageReadiness is the healthcheck that images of virtual machines bring
// themselves and that only a container engine would run: what they write into
// /health, taken as ready where the image has none.
func ImageReadiness() *Readiness {
	k, ok := kinds.Builtin().Lookup("generic_vm")
	if !ok || k.Readiness == nil {
		return nil
	}
	r := k.Readiness
	return &Readiness{Reason: r.Reason, Healthcheck: lab.Healthcheck{
		Test: r.Test, Interval: r.Interval, Timeout: r.Timeout, Retries: r.Retries, StartPeriod: r.StartPeriod,
	}}
}
