package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// leastLabs is how many labs of the corpus are compared in each form.
const leastLabs = 20

// TestDocumentCorpus writes public labs as documents, in both forms, and compares the
// objects with those of the topology under the same policy.
func TestDocumentCorpus(t *testing.T) {
	corpus, err := filepath.Abs("../../../shared/corpus")
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(corpus, "INDEX.tsv"))
	if err != nil {
		t.Skip("the corpus of public labs is not beside this checkout")
	}
	done := map[string]int{}
	for i, line := range strings.Split(strings.TrimSpace(string(index)), "\n") {
		fields := strings.Split(line, "\t")
		if i == 0 {
			continue
		}
		topo := filepath.Join(corpus, fields[0], filepath.FromSlash(fields[8]))
		text, err := os.ReadFile(topo)
		if err != nil {
			t.Fatal(err)
		}
		for form, write := range map[string]func([]byte) (string, bool){"topology": asTopology, "nodes": asNodes} {
			documents, ok := write(text)
			if !ok || done[form] >= leastLabs || !renders(t, topo) {
				continue
			}
			done[form]++
			t.Run(form+"/"+fields[0], func(t *testing.T) { compareDocuments(t, filepath.Join(corpus, fields[0]), fields[8], documents) })
		}
	}
	for _, form := range []string{"topology", "nodes"} {
		if done[form] < leastLabs {
			t.Errorf("%d labs as %s, want %d", done[form], form, leastLabs)
		}
	}
}

func renders(t *testing.T, topo string) bool {
	c, err := Compile(t.Context(), Input{Ref: topo, AllowMissing: true})
	if err != nil {
		return false
	}
	defer c.Close()
	return !HasErrors(c.Diags)
}

// compareDocuments renders a copy of the lab both ways.
func compareDocuments(t *testing.T, lab, topo, documents string) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(lab)); err != nil {
		t.Fatal(err)
	}
	topo = filepath.Join(dir, filepath.FromSlash(topo))
	written := filepath.Join(filepath.Dir(topo), "documents.yaml")
	if err := os.WriteFile(written, []byte(documents), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := Compile(t.Context(), Input{Ref: written, AllowMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Documents == nil || HasErrors(c.Diags) {
		t.Fatalf("not read:\n%s", listed(c.Diags))
	}
	_, text, err := c.Documents.Texts(false)
	if err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(t.TempDir(), "c9s.yaml")
	if err := os.WriteFile(policy, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	want := renderedObjects(t, Input{Ref: topo, AllowMissing: true, Namespace: "labs", Policy: policy})
	got := renderedObjects(t, Input{Ref: written, AllowMissing: true})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-topology +documents:\n%.3000s", diff)
	}
}

// asTopology writes a lab as a Topology. Variables and templates are not for it.
func asTopology(text []byte) (string, bool) {
	if strings.ContainsAny(string(text), "$\t\r") || strings.Contains(string(text), "{{") || strings.HasPrefix(string(text), " ") {
		return "", false
	}
	var b strings.Builder
	b.WriteString("apiVersion: clabernetes.containerlab.dev/v1alpha1\nkind: Topology\nmetadata: {name: lab, namespace: labs}\nspec:\n  definition:\n    containerlab: |\n")
	for line := range strings.Lines(string(text)) {
		b.WriteString("      " + line)
	}
	return b.String(), true
}

// dnsLabel is what the name of a Node can be.
var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// asNodes writes a lab as Nodes and Links. Only the simplest labs can be: what nodes inherit
// is at one level, and links have two ends.
func asNodes(text []byte) (string, bool) {
	if strings.Contains(string(text), "$") || strings.Contains(string(text), "{{") {
		return "", false
	}
	type defs = map[string]any
	var lab struct {
		Name     string `yaml:"name"`
		Topology struct {
			Defaults defs            `yaml:"defaults"`
			Kinds    map[string]defs `yaml:"kinds"`
			Nodes    map[string]defs `yaml:"nodes"`
			Links    []struct {
				Endpoints []string `yaml:"endpoints"`
			} `yaml:"links"`
		} `yaml:"topology"`
	}
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	dec.KnownFields(true)
	if dec.Decode(&lab) != nil || !dnsLabel.MatchString(lab.Name) {
		return "", false
	}
	var documents []any
	head := func(kind, name string, labels map[string]string, spec any) {
		documents = append(documents, map[string]any{"apiVersion": "c9s.run/v1alpha1", "kind": kind,
			"metadata": map[string]any{"name": name, "namespace": "labs", "labels": labels}, "spec": spec})
	}
	for name, own := range lab.Topology.Nodes {
		spec := defs{}
		kind, _ := own["kind"].(string)
		if kind == "" {
			kind, _ = lab.Topology.Defaults["kind"].(string)
		}
		for _, level := range []defs{own, lab.Topology.Kinds[kind], lab.Topology.Defaults} {
			for key, v := range level {
				_, have := spec[key]
				if !slices.Contains([]string{"kind", "type", "image", "startup-config", "license", "binds", "exec", "env", "ports", "cmd", "entrypoint", "mgmt-ipv4", "mgmt-ipv6", "memory", "cpu", "network-mode"}, key) {
					return "", false
				}
				switch v.(type) {
				case []any, map[string]any:
					if have {
						return "", false // they are merged
					}
				}
				if !have {
					spec[key] = v
				}
			}
		}
		if !dnsLabel.MatchString(name) {
			return "", false
		}
		head("Node", name, map[string]string{"c9s.run/topologyOwner": lab.Name}, spec)
	}
	slices.SortFunc(documents, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for i, l := range lab.Topology.Links {
		if len(l.Endpoints) != 2 {
			return "", false
		}
		ends := map[string]any{}
		for j, text := range l.Endpoints {
			node, iface, ok := strings.Cut(text, ":")
			if !ok || lab.Topology.Nodes[node] == nil {
				return "", false
			}
			ends["endpoint"+string(rune('A'+j))] = map[string]any{"nodeName": node, "interfaceName": iface}
		}
		head("Link", fmt.Sprintf("l%d", i), nil, ends)
	}
	var b strings.Builder
	enc := yaml.NewEncoder(&b)
	for _, d := range documents {
		if enc.Encode(d) != nil {
			return "", false
		}
	}
	return b.String(), len(lab.Topology.Nodes) > 0
}
