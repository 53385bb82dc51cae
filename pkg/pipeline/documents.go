package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/documents"
	"github.com/c9s-lab/c9s/pkg/policy"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// readDocuments reads a topology that is written as documents; nil if it cannot be read.
func (c *Compiled) readDocuments(in Input) *topology.File {
	docs, diags := documents.Read(c.Source, in.AllowMissing && !in.WholeDocuments)
	c.Documents, c.Diags = docs, append(c.Diags, diags...)
	if docs.Topology == nil {
		return nil
	}
	file, diags := topology.LoadTree(c.Source, docs.Topology)
	c.Diags = append(c.Diags, diags...)
	return file
}

// addDocuments adds to the options what the documents have beside the topology. own is the
// policy file next to them.
func (c *Compiled) addDocuments(ctx context.Context, in Input, own *policy.Policy, o *compile.Options) {
	if o.Namespace == "" {
		o.Namespace = c.Documents.Namespace
	}
	if c.Documents.Policy != nil {
		derived, diags := policy.LoadTree(c.Documents.Policy, c.Source.Locate)
		c.Diags = append(c.Diags, diags...)
		if p := own.With(derived); p != nil {
			o.Policy = p
		}
	}
	if in.Adopt {
		if c.Documents.Adopt.Empty() {
			c.Diags = append(c.Diags, diag.Diagnostic{Code: documents.CodeAdopt, Severity: diag.Warning, Pos: diag.Pos{File: c.Source.Name},
				Message: "the documents have no addresses and ids to adopt", Hint: "export them with kubectl get -o yaml, which prints their status"})
		}
		o.Adopt = c.Documents.Adopt
	}
	o.Supplied = map[string]compile.Supplied{}
	for _, name := range slices.Sorted(maps.Keys(c.Documents.Files)) {
		f := c.Documents.Files[name]
		if f.URL != "" && f.Data == nil {
			if in.AllowMissing && !in.WholeDocuments {
				continue
			}
			data, err := fetched(ctx, f, o)
			if err != "" {
				c.Diags = append(c.Diags, diag.Diagnostic{Code: documents.CodeURL, Severity: diag.Error, Pos: f.Pos, Message: err, Hint: "correct the URL or the digest"})
			} else {
				f.Data = data
				c.Documents.Files[name] = f
			}
		}
		o.Supplied[name] = compile.Supplied{Data: f.Data, Mode: f.Mode, Secret: f.Secret}
	}
}

// fetched returns the contents of a file's URL, or why there are none.
func fetched(ctx context.Context, f documents.File, o *compile.Options) ([]byte, string) {
	data, err := o.Fetch(ctx, f.URL)
	if err != nil {
		return nil, "the file cannot be fetched: " + err.Error()
	}
	sum := sha256.Sum256(data)
	if got := "sha256:" + hex.EncodeToString(sum[:]); f.Digest != "" && got != f.Digest {
		return nil, "the file has the digest " + got + " and not " + f.Digest
	}
	return data, ""
}
