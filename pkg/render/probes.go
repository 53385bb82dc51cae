package render

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// Docker's defaults for a healthcheck: seconds, seconds, tries.
const (
	dockerInterval = 30
	dockerTimeout  = 30
	dockerRetries  = 3
)

// readinessProbe carries Docker's healthcheck. A failure only takes the node's
// readiness, as in Docker it only takes its health: nothing is restarted. The
// start period has no counterpart and needs none: failures before the first
// success change nothing, and a success counts at once, with or without it.
func readinessProbe(check lab.Healthcheck) *corev1.Probe {
	argv := healthArgv(check.Test)
	if argv == nil {
		return nil
	}
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: literals(argv)}},
		PeriodSeconds:    int32(orDefault(check.Interval, dockerInterval)),
		TimeoutSeconds:   int32(orDefault(check.Timeout, dockerTimeout)),
		FailureThreshold: int32(orDefault(check.Retries, dockerRetries)),
	}
}

// healthArgv is the command of a healthcheck, nil for none.
func healthArgv(test []string) []string {
	if len(test) < 2 {
		return nil
	}
	switch test[0] {
	case "CMD":
		return test[1:]
	case "CMD-SHELL":
		return []string{"/bin/sh", "-c", test[1]}
	}
	return nil
}

// probes sets the first container's probes: the policy's where it has any, else
// the plan's readiness.
func (b *deploymentBuilder) probes(m member, c *corev1.Container) {
	policy := m.node.Policy
	c.LivenessProbe, c.StartupProbe = policy.Liveness, policy.Startup
	switch {
	case policy.NoReadiness:
	case policy.SSH != nil:
		c.ReadinessProbe = loginProbe(m)
	case policy.Readiness != nil:
		c.ReadinessProbe = policy.Readiness
	case m.plan.Readiness != nil:
		c.ReadinessProbe = readinessProbe(m.plan.Readiness.Healthcheck)
	}
}
