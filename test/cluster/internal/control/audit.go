package control

import (
	"path/filepath"

	"github.com/c9s-lab/c9s/test/cluster/internal/host"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

// auditPolicy notes every write once, when it is answered, without its content.
// Leases and the state of workers are written all the time, whatever runs; reviews,
// tokens and connections change nothing.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: None
    resources:
      - {group: coordination.k8s.io}
      - {group: authorization.k8s.io}
      - {group: authentication.k8s.io}
      - {group: "", resources: [nodes, nodes/status, serviceaccounts/token, pods/proxy, pods/exec, pods/portforward]}
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
`

func auditPolicyPath(c site.Cluster) string { return filepath.Join(c.State(), "audit-policy.yaml") }

// AuditLog is where the API server notes who wrote what, for tests that count writes.
func AuditLog(c site.Cluster) string { return filepath.Join(c.Control().Logs(), "audit.log") }

// WriteAuditPolicy writes what the API server reads at its start.
func WriteAuditPolicy(c site.Cluster) error {
	if !c.Audit {
		return nil
	}
	return host.WriteFile(auditPolicyPath(c), []byte(auditPolicy), 0o644)
}

func audit(c site.Cluster) []string {
	if !c.Audit {
		return nil
	}
	return []string{
		"--audit-policy-file=" + auditPolicyPath(c),
		"--audit-log-path=" + AuditLog(c),
		"--audit-log-maxsize=1024", // megabytes: no rotation within a test
		"--audit-log-maxbackup=1",
	}
}
