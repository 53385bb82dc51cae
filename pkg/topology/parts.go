package topology

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/fetch"
)

// Part is one file of a lab that is written as clabernetes' documents.
type Part struct {
	// Name is how diagnostics call the file.
	Name string
	Data []byte
}

// groups are the API groups of clabernetes: up to 0.8, and since 0.8.
var foreignGroups = []string{"clabernetes.containerlab.dev", "c9s.run"}

// ForeignGroup reports whether apiVersion is of one of clabernetes' API groups.
func ForeignGroup(apiVersion string) bool {
	group, _, versioned := strings.Cut(apiVersion, "/")
	return versioned && slices.Contains(foreignGroups, group)
}

// isForeign reports whether data is clabernetes' documents: its first document is a
// Kubernetes object, and one of them, or of the items of a List, is of clabernetes.
func isForeign(data []byte) bool {
	if !slices.ContainsFunc(foreignGroups, func(g string) bool { return bytes.Contains(data, []byte(g+"/")) }) {
		return false
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for first := true; ; first = false {
		var head struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string `yaml:"kind"`
			Items      []struct {
				APIVersion string `yaml:"apiVersion"`
			} `yaml:"items"`
		}
		err := dec.Decode(&head)
		var shape *yaml.TypeError
		if errors.Is(err, io.EOF) || err != nil && !errors.As(err, &shape) {
			return false
		}
		if first && (head.APIVersion == "" || head.Kind == "") {
			return false
		}
		if ForeignGroup(head.APIVersion) {
			return true
		}
		for _, item := range head.Items {
			if ForeignGroup(item.APIVersion) {
				return true
			}
		}
	}
}

// isObject reports whether the first document of data is a Kubernetes object.
func isObject(data []byte) bool {
	var head struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
	}
	err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&head)
	var shape *yaml.TypeError
	return (err == nil || errors.As(err, &shape)) && head.APIVersion != "" && head.Kind != ""
}

// documentsAmong returns the files of a folder that are Kubernetes objects, or none if
// none of them has a document of clabernetes.
func documentsAmong(entries []fs.DirEntry, read func(base string) ([]byte, error), name func(base string) string) ([]Part, error) {
	var parts []Part
	foreign, size := false, 0
	for _, e := range entries {
		base := e.Name()
		if e.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(base)) ||
			slices.Contains([]string{"c9s.yaml", "c9s.yml", "kustomization.yaml", "kustomization.yml"}, base) {
			continue
		}
		data, err := read(base)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", base, UnwrapPath(err))
		}
		if size += len(data); size > fetch.MaxSize {
			return nil, fmt.Errorf("the documents of the folder are longer than %d bytes", fetch.MaxSize)
		}
		if isObject(data) {
			parts = append(parts, Part{Name: name(base), Data: data})
			foreign = foreign || isForeign(data)
		}
	}
	if !foreign {
		return nil, nil
	}
	return parts, nil
}

// asDocuments makes a source one of documents if its text is that.
func (s *Source) asDocuments() *Source {
	if isForeign(s.Data) {
		s.Parts = []Part{{s.Name, s.Data}}
	}
	return s
}

// Locate turns a position in all documents together, in which the lines of each file
// follow those of the one before, into one in its file.
func (s *Source) Locate(p diag.Pos) diag.Pos {
	line := p.Line
	for _, part := range s.Parts {
		p.File = part.Name
		n := Lines(part.Data)
		if line <= n {
			break
		}
		line -= n
	}
	p.Line = line
	return p
}

// Lines is how many lines a file takes in Locate.
func Lines(data []byte) int { return bytes.Count(data, []byte("\n")) + 1 }

// LoadTree reads a topology from the tree of a YAML document. Nothing in it is expanded.
// The positions of the tree are those of Locate.
func LoadTree(src *Source, root *yaml.Node) (*File, []diag.Diagnostic) {
	var diags diag.List
	f := &File{Path: src.Name, Dir: src.Dir}
	d := f.decoder(&diags)
	d.Locate = src.Locate
	if !f.decode(d, root) {
		return nil, diags.All()
	}
	return f, diags.All()
}
