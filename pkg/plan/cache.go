package plan

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/c9s-lab/c9s/internal/atomicfile"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// cache stores the plans of another planner on disk.
type cache struct {
	planner Planner
	dir     string
}

// Cache stores the plans of p in dir, by a digest of everything that a plan depends on: the
// planner's program, the node and its links. The digest includes neither lines of the
// topology nor other nodes. Plans with an error are not stored. If a plan cannot be read
// or written, the node is planned again.
func Cache(p Planner, dir string) Planner { return &cache{planner: p, dir: dir} }

func (c *cache) Name() string { return c.planner.Name() }

func (c *cache) Plan(ctx context.Context, l *lab.Lab, n *lab.Node) (*Plan, error) {
	file, err := c.file(l, n)
	if err != nil {
		return nil, err
	}
	if p := readPlan(file); p != nil {
		place(p, n)
		return p, nil
	}
	p, err := c.planner.Plan(ctx, l, n)
	if err != nil {
		return nil, err
	}
	for _, d := range p.Diagnostics {
		if d.Severity == diag.Error {
			return p, nil
		}
	}
	_ = writePlan(file, p) // the plan is valid even if it is not stored
	return p, nil
}

// file returns the path at which the plan of n is stored.
func (c *cache) file(l *lab.Lab, n *lab.Node) (string, error) {
	program := ""
	if f, ok := c.planner.(interface{ Fingerprint() string }); ok {
		program = f.Fingerprint() // without starting it
	} else {
		program = c.planner.Name()
	}
	data, err := json.Marshal(struct {
		Plan, Protocol, Program, Node string
		Lab                           *lab.Lab
	}{Version, ProtocolVersion, program, n.Name, excerpt(l, n)})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	return filepath.Join(c.dir, name[:2], name[2:]+".json"), nil
}

func readPlan(file string) *Plan {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	p := &Plan{}
	if json.Unmarshal(data, p) != nil || p.Version != Version {
		return nil
	}
	return p
}

func writePlan(file string, p *Plan) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return atomicfile.Write(file, data, 0o600, 0o700)
}

// helloFile returns the path at which Hooks stores its program's first response.
func helloFile(h *Hooks, dir string) string {
	sum := sha256.Sum256([]byte(ProtocolVersion + "\x00" + h.Fingerprint()))
	return filepath.Join(dir, "program-"+hex.EncodeToString(sum[:8])+".json")
}

func readHello(file string) *Response {
	if file == "" {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	hello := &Response{}
	if json.Unmarshal(data, hello) != nil || hello.Version != ProtocolVersion || hello.Planner == "" {
		return nil
	}
	return hello
}

func writeHello(file string, hello *Response) {
	if file == "" || hello == nil {
		return
	}
	if data, err := json.Marshal(hello); err == nil {
		_ = atomicfile.Write(file, data, 0o600, 0o700) // without the file, the program is asked again
	}
}
