// Package node runs a node of the cluster: a process tree with namespaces and
// cgroups of its own, a root file system that is the host's with changes kept in
// memory, and an init that keeps the node's services running. Killing the init
// kills the node, as pulling the plug would.
package node

import (
	"encoding/json"
	"path/filepath"

	"github.com/c9s-lab/c9s/test/cluster/internal/host"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

// A Spec is everything that an init needs to know.
type Spec struct {
	Hostname  string            `json:"hostname"`
	NetnsPath string            `json:"netnsPath"`
	Cgroup    string            `json:"cgroup"`
	Scratch   string            `json:"scratch"` // an empty folder to build the root file system on
	Binds     []Bind            `json:"binds"`
	Files     map[string]string `json:"files"` // written into the node's root
	Logs      string            `json:"logs"`
	Path      string            `json:"path"` // $PATH of the services
	Env       []string          `json:"env"`  // of the services, besides
	Services  []Service         `json:"services"`
}

// A Bind is a folder of the host that the node sees, and may write to.
type Bind struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// A Service is a program that is started, and started again when it ends.
type Service struct {
	Name  string   `json:"name"`
	Args  []string `json:"args"` // the program first; "self" is the program that runs the init
	After string   `json:"after,omitempty"`
	// After is what must accept connections first: "unix:/path" or "tcp:address:port".
}

func specPath(n site.Node) string { return filepath.Join(n.Run(), "spec.json") }

func (s Spec) write(path string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return host.WriteFile(path, text, 0o600)
}
