package strictyaml

import (
	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// OneCode returns the codes of a file whose diagnostics all have the same one.
func OneCode(code diag.Code) Codes {
	return Codes{WrongType: code, UnknownKey: code, DuplicateKey: code, BadValue: code, TooLarge: code}
}

// Root parses the file and returns the value at its top, nil if there is none, which it reports:
// a syntax error with its own code. what names the file in messages, as in "the scenario", and
// apiVersion is what it begins with.
func (d *Decoder) Root(data []byte, syntax diag.Code, what, apiVersion string) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		d.Diags.Add(SyntaxError(syntax, d.File, string(data), err))
		return nil
	}
	if len(doc.Content) == 0 {
		d.Diags.Errorf(d.Codes.WrongType, diag.Pos{File: d.File}, "begin with apiVersion: "+apiVersion, "%s is empty", what)
		return nil
	}
	return doc.Content[0]
}

// Header is how c9s' own files begin.
type Header struct{ APIVersion, Kind string }

// CheckHeader reports where the header of a file is not the one that it should have.
func (d *Decoder) CheckHeader(root *yaml.Node, got, want Header) {
	if got.APIVersion != want.APIVersion {
		d.Errorf(d.Codes.WrongType, root, "write apiVersion: "+want.APIVersion, "apiVersion is %q", got.APIVersion)
	}
	if got.Kind != want.Kind {
		d.Errorf(d.Codes.WrongType, root, "write kind: "+want.Kind, "kind is %q", got.Kind)
	}
}
