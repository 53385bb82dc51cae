package testcluster

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/internal/control"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

// A Write is a request to the API server that changed something.
type Write struct {
	Agent     string // the program, the first word of its User-Agent: "c9s", "kwok/v0.8.0"
	Verb      string // create, update, patch, delete, deletecollection
	Resource  string // with the subresource: "pods/status"
	Namespace string
	Name      string
	At        time.Time // when it was answered
}

// An AuditMark is a place in the API server's log.
type AuditMark int64

// MarkAudit is the end of the log of writes, which clusters with Options.Audit have.
func (c *Cluster) MarkAudit(t testing.TB) AuditMark {
	t.Helper()
	info, err := os.Stat(c.auditLog())
	if err != nil {
		t.Fatalf("the log of writes, which clusters with Options.Audit have: %v", err)
	}
	return AuditMark(info.Size())
}

// WritesSince are the writes after a mark that succeeded and were no dry-run.
// Leases and the state of workers are not in the log.
func (c *Cluster) WritesSince(t testing.TB, mark AuditMark) []Write {
	t.Helper()
	f, err := os.Open(c.auditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(int64(mark), 0); err != nil {
		t.Fatal(err)
	}
	var out []Write
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb, UserAgent, RequestURI string
			StageTimestamp              time.Time
			ObjectRef                   struct{ Resource, Subresource, Namespace, Name string }
			ResponseStatus              struct{ Code int }
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the last line may be half written
		}
		if e.ResponseStatus.Code/100 != 2 || strings.Contains(e.RequestURI, "dryRun=") {
			continue
		}
		agent, _, _ := strings.Cut(e.UserAgent, " ")
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		out = append(out, Write{Agent: agent, Verb: e.Verb, Resource: resource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, At: e.StageTimestamp})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func (c *Cluster) auditLog() string { return control.AuditLog(site.Cluster{Name: c.Name}) }
