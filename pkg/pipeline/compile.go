package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/documents"
	"github.com/c9s-lab/c9s/pkg/fabric"
	"github.com/c9s-lab/c9s/pkg/fetch"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/policy"
	"github.com/c9s-lab/c9s/pkg/reach"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// Compiled is a topology with the lab that was compiled from it.
type Compiled struct {
	Source *topology.Source
	File   *topology.File
	Kinds  *kinds.Catalogue
	Lab    *lab.Lab
	// Documents is what the documents came to that the topology is written as; nil for a
	// topology file.
	Documents *documents.Lab
	// Fabric is the fabric file, with its plan; nil for none.
	Fabric *fabric.Fabric
	// Diags are the diagnostics of reading and compiling.
	Diags []diag.Diagnostic
}

// Close deletes what was fetched for the topology.
func (c *Compiled) Close() { c.Source.Close() }

// Input names a topology and what it may read.
type Input struct {
	// Ref is a file, a folder, a URL or a Git repository; "-" is Stdin, and "" the only
	// topology in the working directory.
	Ref   string
	Stdin io.Reader
	// Env is the environment. A fetched topology sees only the variables in PassEnv,
	// unless Trust is set.
	Env     []string
	PassEnv []string
	Trust   bool
	// VarsFiles hold the variables of the topology's template.
	VarsFiles []string
	// KindsDir holds kinds that extend the catalogue, Policy is the policy file and Fabric the
	// fabric file; "" for none and for the ones next to the topology.
	KindsDir, Policy, Fabric string

	MapFiles     map[string]string
	AllowMissing bool
	// WholeDocuments are documents that must have all ConfigMaps, Secrets and URLs that
	// they name, even if other files may be missing.
	WholeDocuments bool
	Namespace      string
	// Previous are the allocations to retain. Recycle releases those of removed nodes.
	Previous *lab.Allocations
	Recycle  bool
	// Adopt keeps the addresses and ids that the status of documents has.
	Adopt bool
	// Saved starts nodes with their saved configurations.
	Saved bool
	// For is the release of containerlab that must accept the topology, "" for none in
	// particular.
	For string
}

// Compile reads and compiles a topology. The error is for what is not a diagnostic of the
// topology: it cannot be opened, or the policy file cannot be read.
func Compile(ctx context.Context, in Input) (*Compiled, error) {
	c := &Compiled{Kinds: kinds.Builtin()}
	if in.KindsDir != "" {
		cat, diags := kinds.LoadDir(c.Kinds, in.KindsDir)
		c.Diags = append(c.Diags, diags...)
		if cat != nil {
			c.Kinds = cat
		}
	}
	src, err := topology.Open(ctx, in.Ref, in.Stdin)
	if err != nil {
		return nil, err
	}
	c.Source = src
	if in.Trust {
		src.Reach = src.Reach.Trust()
	}
	if err := c.read(ctx, in); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// read reads and compiles the source.
func (c *Compiled) read(ctx context.Context, in Input) error {
	src := c.Source
	env, withheld := src.Reach.Env(in.Env, in.PassEnv)
	var file *topology.File
	var diags []diag.Diagnostic
	if len(src.Parts) > 0 {
		file = c.readDocuments(in)
	} else {
		if in.Adopt {
			return fmt.Errorf("--adopt needs documents with a status; %s is a topology file", src.Name)
		}
		file, diags = topology.Load(ctx, src, topology.Options{Env: env, Withheld: withheld, VarsFiles: in.VarsFiles})
	}
	c.File, c.Diags = file, append(c.Diags, diags...)
	pol, diags, err := loadPolicy(src, in.Policy)
	if err != nil {
		return err
	}
	c.Diags = append(c.Diags, diags...)
	if c.Fabric, diags, err = loadFabric(src, in.Fabric); err != nil {
		return err
	}
	c.Diags = append(c.Diags, diags...)
	if file == nil {
		if src.IsTemplate() && !slices.ContainsFunc(c.Diags, func(d diag.Diagnostic) bool { return d.Code == topology.CodeTemplate }) {
			c.Diags = append(c.Diags, templateLines(src))
		}
		return nil
	}
	o := in.options(c, env, pol)
	if c.Documents != nil {
		c.addDocuments(ctx, in, pol, &o)
	}
	l, diags := compile.Compile(ctx, file, o)
	c.Lab = l
	c.Diags = append(c.Diags, diags...)
	if src.Reach.Limited() && in.Policy == "" && l.Image != "" {
		c.Diags = append(c.Diags, diag.Diagnostic{Code: codeForeignImage, Severity: diag.Warning, Pos: diag.Pos{File: src.Name},
			Message: fmt.Sprintf("the policy of a fetched topology cannot choose the c9s image; %s is ignored", l.Image), Hint: "use --image if you trust it"})
		l.Image = ""
	}
	if src.Reach.Limited() && in.Policy == "" {
		c.dropClusterFiles()
	}
	if note, ok := src.Reach.Note(src.Name); ok {
		c.Diags = append(c.Diags, note)
	}
	if src.IsTemplate() && HasErrors(c.Diags) {
		c.Diags = append(c.Diags, templateLines(src))
	}
	return nil
}

// dropClusterFiles keeps a fetched topology out of the Secrets and ConfigMaps of the namespace.
func (c *Compiled) dropClusterFiles() {
	for _, n := range c.Lab.Nodes {
		if s := n.Policy.SSH; s != nil && s.Secret != "" {
			n.Policy.SSH = nil
			c.Diags = append(c.Diags, diag.Diagnostic{Code: codeForeignFiles, Severity: diag.Warning, Pos: s.Pos, Node: n.Name,
				Message: fmt.Sprintf("node %q: a fetched topology cannot use Secret %s of the namespace; the SSH probe is ignored", n.Name, s.Secret),
				Hint:    "write it in a policy of your own (--policy), or use --trust"})
		}
		if files := n.Policy.Files; len(files) > 0 {
			n.Policy.Files = nil
			c.Diags = append(c.Diags, diag.Diagnostic{Code: codeForeignFiles, Severity: diag.Warning, Pos: files[0].Pos, Node: n.Name,
				Message: fmt.Sprintf("node %q: a fetched topology cannot mount Secrets and ConfigMaps of the namespace; %s is ignored", n.Name, diag.Count(len(files), "file")),
				Hint:    "write them in a policy of your own (--policy), or use --trust"})
		}
	}
}

func (in Input) options(c *Compiled, env []string, pol *policy.Policy) compile.Options {
	src := c.Source
	home, _ := os.UserHomeDir()
	o := compile.Options{
		Namespace: in.Namespace, Previous: in.Previous, Recycle: in.Recycle, Saved: in.Saved,
		Kinds: c.Kinds, Env: env, Home: home, MapFiles: in.MapFiles, AllowMissing: in.AllowMissing, For: in.For,
		Reach: src.Reach, Fetch: fetch.HTTP, GitHead: fetch.Head,
	}
	if src.Reach.Limited() {
		o.Fetch = fetch.Public
	}
	if src.Hash != "" {
		o.GitHead = func(context.Context, string) (branch, hash string) { return src.Branch, src.Hash }
	}
	if c.Fabric != nil {
		o.Fabric = c.Fabric
	}
	if pol != nil {
		o.Policy = pol
		o.Saved = o.Saved || pol.Saved()
	}
	return o
}

// templateLines explains the line numbers in the diagnostics of a template.
func templateLines(src *topology.Source) diag.Diagnostic {
	return diag.Diagnostic{
		Code: topology.CodeTemplateRows, Severity: diag.Warning, Pos: diag.Pos{File: src.Name},
		Message: "the file is a template; line numbers refer to its output",
	}
}

// maxBeside is the maximum size of a policy or fabric file in bytes.
const maxBeside = 4 << 20

// loadPolicy reads the named policy file, or the one next to the topology. Without one, the
// policy is nil.
func loadPolicy(src *topology.Source, name string) (*policy.Policy, []diag.Diagnostic, error) {
	name, data, err := readBeside(src, "policy", name, policy.FileNames)
	if name == "" || err != nil {
		return nil, nil, err
	}
	p, diags := policy.Load(name, data)
	return p, diags, nil
}

// loadFabric is loadPolicy for the fabric file.
func loadFabric(src *topology.Source, name string) (*fabric.Fabric, []diag.Diagnostic, error) {
	name, data, err := readBeside(src, "fabric", name, fabric.FileNames)
	if name == "" || err != nil {
		return nil, nil, err
	}
	f, diags := fabric.Load(name, data)
	return f, diags, nil
}

// readBeside reads the named file, or the first of bases that is next to the topology, which
// reads no more than the topology itself. The name is that for messages, "" without a file.
func readBeside(src *topology.Source, what, name string, bases []string) (string, []byte, error) {
	if name != "" {
		data, err := (*reach.Reach)(nil).ReadFile(name, maxBeside)
		return readAs(what, name, data, err)
	}
	if src.Dir == "" {
		return "", nil, nil
	}
	for _, base := range bases {
		full := filepath.Join(src.Dir, base)
		if _, err := src.Reach.Stat(full); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		name := filepath.Join(filepath.Dir(src.Name), base)
		if _, err := os.Stat(name); err != nil {
			name = full
		}
		if src.Reach.Limited() {
			name = base
		}
		data, err := src.Reach.ReadFile(full, maxBeside)
		return readAs(what, name, data, err)
	}
	return "", nil, nil
}

func readAs(what, name string, data []byte, err error) (string, []byte, error) {
	if err != nil {
		return "", nil, fmt.Errorf("reading the %s file %s: %w", what, name, topology.UnwrapPath(err))
	}
	return filepath.ToSlash(name), data, nil
}
