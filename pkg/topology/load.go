package topology

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/hellt/envsubst/parse"
	"go.yaml.in/yaml/v3"
)

// Options of Load.
type Options struct {
	// Env is the environment for ${VAR}, as NAME=value.
	Env []string
	// VarsFiles are the template's variables files; none means those that are
	// found beside the topology.
	VarsFiles []string
}

// Load reads a topology: template, environment, YAML, in containerlab's order.
// The File is nil only where nothing could be read; with errors in the
// diagnostics it holds what was understood.
func Load(src *Source, o Options) (*File, []diag.Diagnostic) {
	var diags diag.List
	rendered, ok := renderTemplate(src, o.VarsFiles, &diags)
	if !ok {
		return nil, diags.All()
	}
	expanded, err := ExpandEnv(string(rendered), o.Env)
	if err != nil {
		diags.Errorf(CodeEnv, diag.Pos{File: src.Name}, "write $$ for a plain dollar sign", "expanding environment variables: %v", err)
		return nil, diags.All()
	}
	f := parseFile(src, expanded, &diags)
	all := diags.All()
	if f != nil {
		f.Attribute(all)
	}
	return f, all
}

// ExpandEnv replaces $NAME and ${NAME} by the variables of env (NAME=value) where
// they are set and not empty, ${NAME:-d}, ${NAME:=d}, ${NAME-d} and ${NAME=d} by
// their default otherwise, and $$ by one dollar sign. References to unset
// variables without a default stay (as $NAME in either form), and so do names that
// begin with a digit.
func ExpandEnv(text string, env []string) (out string, err error) {
	if !strings.Contains(text, "$") {
		return text, nil
	}
	defer func() {
		if r := recover(); r != nil {
			out, err = "", errors.New("a ${...} reference is malformed")
		}
	}()
	return parse.New("topology", env, &parse.Restrictions{NoDigit: true, NoReplace: true}).Parse(text)
}

func parseFile(src *Source, text string, diags *diag.List) *File {
	f := &File{Path: src.Name, Dir: src.Dir}
	dec := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			diags.Errorf(CodeMissingField, diag.Pos{File: src.Name}, "start with \"name:\" and \"topology:\"", "the topology file is empty")
			return nil
		}
		diags.Add(SyntaxError(src.Name, text, err))
		return nil
	}
	d := &decoder{file: src.Name, diags: diags, merging: map[*yaml.Node]bool{}}
	root := d.deref(doc.Content[0])
	if root == nil {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		d.errorf(CodeWrongType, root, "start with \"name:\" and \"topology:\"", "a topology file must be a mapping, not %s", describe(root))
		return nil
	}
	d.decodeStruct(root, f, "", nil)
	f.Uses = d.uses
	f.blocks = blocksOf(root)
	var next yaml.Node
	if err := dec.Decode(&next); err == nil {
		diags.Warnf(CodeDocuments, d.pos(&next), "put each topology into a file of its own", "the file has a second YAML document, which containerlab does not read")
	} else if !errors.Is(err, io.EOF) {
		diags.Add(SyntaxError(src.Name, text, err))
	}
	return f
}
