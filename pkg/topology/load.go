package topology

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/hellt/envsubst/parse"
	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// Options of Load.
type Options struct {
	// Env is the environment for ${VAR}, as NAME=value. Withheld are variables that the
	// caller has and the topology does not get.
	Env      []string
	Withheld []string
	// VarsFiles are the template's variables files; none means those that are
	// found next to the topology.
	VarsFiles []string
}

// Load reads a topology: template, environment, YAML, in containerlab's order.
// The File is nil only where nothing could be read; with errors in the
// diagnostics it holds what was understood.
func Load(ctx context.Context, src *Source, o Options) (*File, []diag.Diagnostic) {
	var diags diag.List
	rendered, ok := renderTemplate(ctx, src, o.VarsFiles, &diags)
	if !ok {
		return nil, diags.All()
	}
	expanded, err := ExpandEnv(string(rendered), o.Env)
	if err != nil {
		diags.Errorf(CodeEnv, diag.Pos{File: src.Name}, "write $$ for a plain dollar sign", "expanding environment variables: %v", err)
		return nil, diags.All()
	}
	noteEnv(src, string(rendered), o, &diags)
	f := parseFile(src, expanded, &diags)
	all := diags.All()
	if f != nil {
		f.Attribute(all)
	}
	return f, all
}

// reference is a dollar sign for itself, or a variable's name.
var reference = regexp.MustCompile(`\$\$|\$\{?([A-Za-z_][A-Za-z0-9_]*)`)

// noteEnv notes the variables whose values are in the text now, and warns of those that
// would be if the topology were not a stranger's.
func noteEnv(src *Source, text string, o Options, diags *diag.List) {
	set := map[string]bool{}
	for _, kv := range o.Env {
		if name, value, ok := strings.Cut(kv, "="); ok && value != "" {
			set[name] = true
		}
	}
	told := map[string]bool{}
	for _, at := range reference.FindAllStringSubmatchIndex(text, -1) {
		if at[2] < 0 {
			continue
		}
		name := text[at[2]:at[3]]
		if set[name] {
			src.Reach.UseEnv(name)
		} else if slices.Contains(o.Withheld, name) && !told[name] {
			told[name] = true
			pos := diag.Pos{File: src.Name, Line: strings.Count(text[:at[2]], "\n") + 1}
			diags.Warnf(CodeEnvWithheld, pos, fmt.Sprintf("to give it to the topology, pass --env %s, or --trust for all variables", name),
				"the fetched topology cannot read the environment variable %s", name)
		}
	}
}

// ExpandEnv replaces $NAME and ${NAME} by the variables of env (NAME=value) where
// they are set and not empty, ${NAME:-d}, ${NAME:=d}, ${NAME-d} and ${NAME=d} by
// their default otherwise, and $$ by one dollar sign. References to unset
// variables without a default stay (as $NAME in either form), and so do names that
// start with a digit.
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
		diags.Add(strictyaml.SyntaxError(CodeSyntax, src.Name, text, err))
		return nil
	}
	d := f.decoder(diags)
	root := d.Deref(doc.Content[0])
	if root == nil || !f.decode(d, root) {
		return nil
	}
	f.blocks = blocksOf(root)
	var next yaml.Node
	if err := dec.Decode(&next); err == nil {
		diags.Warnf(CodeDocuments, d.Pos(&next), "put each topology in a separate file", "the file has a second YAML document, which containerlab does not read")
	} else if !errors.Is(err, io.EOF) {
		diags.Add(strictyaml.SyntaxError(CodeSyntax, src.Name, text, err))
	}
	return f
}

// decoder returns the decoder of the file.
func (f *File) decoder(diags *diag.List) *strictyaml.Decoder {
	d := &strictyaml.Decoder{
		File: f.Path, Diags: diags, Top: "at the top of a topology file", AllKeys: "`c9s explain` lists all keys",
		Codes: strictyaml.Codes{WrongType: CodeWrongType, UnknownKey: CodeUnknownField, DuplicateKey: CodeDuplicateKey, BadValue: CodeBadValue, TooLarge: CodeTooLarge},
	}
	d.Hint = func(key, path string) string {
		if path == "" && slices.Contains(strictyaml.Keys(reflect.TypeFor[Topology]()), key) {
			return "move it under topology: it is topology." + key
		}
		return ""
	}
	d.Seen = func(t reflect.Type, key string, n *yaml.Node) {
		field := prefixes[t] + key
		if treatments[field] != Supported {
			f.Uses = append(f.Uses, Use{Field: field, Pos: d.Pos(n)})
		}
		if since[field] != "" {
			f.Newer = append(f.Newer, Use{Field: field, Pos: d.Pos(n)})
		}
	}
	return d
}

// decode reads the tree of the file. It reports whether that is a mapping.
func (f *File) decode(d *strictyaml.Decoder, root *yaml.Node) bool {
	if root.Kind != yaml.MappingNode {
		d.Errorf(CodeWrongType, root, "start with \"name:\" and \"topology:\"", "a topology file must be a mapping, not %s", strictyaml.Describe(root))
		return false
	}
	d.DecodeStruct(root, f, "", nil)
	return true
}
