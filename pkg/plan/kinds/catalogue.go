package kinds

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

//go:embed all:data
var builtinFiles embed.FS

// Catalogue is a set of kinds. It is read-only after loading and safe for
// concurrent use.
type Catalogue struct {
	// byName holds every name and alias in lower case.
	byName map[string]*Kind
	kinds  []*Kind
	names  []string
	// sources keeps what each entry was read from, abstract ones included, for
	// those that extend them.
	sources map[string]*source
	// templates finds the files that entries name.
	templates []fs.FS
}

// ContainerlabVersion is the version of containerlab that c9s follows: its topology
// fields and its kinds. planner/go.mod requires the same.
const ContainerlabVersion = "0.79.0"

// Builtin returns the catalogue that c9s comes with: the kinds of ContainerlabVersion.
// It is parsed at the first call.
var Builtin = sync.OnceValue(func() *Catalogue {
	c, problems := load(nil, builtinData(), "")
	if len(problems) > 0 {
		panic("built-in catalogue: " + problems[0].String())
	}
	return c
})

func builtinData() fs.FS {
	data, err := fs.Sub(builtinFiles, "data")
	if err != nil {
		panic(err)
	}
	return data
}

// Lookup finds a kind by its canonical name or an alias, in any case.
func (c *Catalogue) Lookup(name string) (*Kind, bool) {
	if k, ok := c.byName[name]; ok {
		return k, true
	}
	k, ok := c.byName[strings.ToLower(name)]
	return k, ok
}

// All are the kinds, sorted by name.
func (c *Catalogue) All() []*Kind { return slices.Clone(c.kinds) }

// Names are all names that Lookup knows, aliases included, sorted.
func (c *Catalogue) Names() []string { return slices.Clone(c.names) }

// Template reads a file that lies beside the entries, the latest loaded first.
func (c *Catalogue) Template(name string) ([]byte, error) {
	for _, dir := range slices.Backward(c.templates) {
		if data, err := fs.ReadFile(dir, name); err == nil {
			return data, nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
