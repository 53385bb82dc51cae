package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/documents"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/render"
	"github.com/c9s-lab/c9s/pkg/topology"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// section is a case of a file of cases.
type section struct{ name, input, want string }

// sections reads cases of the form "=== name", the input, "--- want", the output.
func sections(t *testing.T, file string) []section {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []section
	var into *string
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "=== "); ok {
			cases = append(cases, section{name: strings.TrimSpace(name)})
			into = &cases[len(cases)-1].input
		} else if line == "--- want\n" {
			into = &cases[len(cases)-1].want
		} else {
			*into += line
		}
	}
	return cases
}

// checkSections compares what each case comes to with what the file says, or rewrites it.
func checkSections(t *testing.T, file string, least int, run func(t *testing.T, input string) string) {
	t.Helper()
	cases := sections(t, file)
	if len(cases) < least {
		t.Errorf("%d cases, want at least %d", len(cases), least)
	}
	var rewritten strings.Builder
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := run(t, c.input)
			fmt.Fprintf(&rewritten, "=== %s\n%s--- want\n%s", c.name, c.input, got)
			if diff := cmp.Diff(c.want, got); diff != "" && !*update {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if *update {
		if err := os.WriteFile(file, []byte(rewritten.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func listed(diags []diag.Diagnostic) string {
	var b strings.Builder
	for _, d := range diags {
		fmt.Fprintf(&b, "%s\n", d)
		if d.Hint != "" {
			fmt.Fprintf(&b, "    hint: %s\n", d.Hint)
		}
	}
	return b.String()
}

// TestBadDocuments holds the diagnostics of documents that must be rejected.
func TestBadDocuments(t *testing.T) {
	checkSections(t, "testdata/documents/bad.txt", 60, func(t *testing.T, input string) string {
		c, err := Compile(t.Context(), Input{Ref: "-", Stdin: strings.NewReader(input)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if !HasErrors(c.Diags) {
			t.Errorf("no error was reported:\n%s", listed(c.Diags))
		}
		return listed(c.Diags)
	})
}

// defaultPorts are the ports of clabernetes' Services, as the policy has them.
var defaultPorts = func() string {
	var b strings.Builder
	for _, port := range []string{`"21"`, `"22"`, `"23"`, `"80"`, "161/udp", `"443"`, `"830"`, `"5000"`, `"5900"`, `"6030"`, `"9339"`, `"9340"`, `"9559"`, `"57400"`} {
		b.WriteString("          - " + port + "\n")
	}
	return b.String()
}()

// TestDocumentFields holds the topology and the policy that each field comes to, and what
// is reported of it.
func TestDocumentFields(t *testing.T) {
	checkSections(t, "testdata/documents/fields.txt", 30, func(t *testing.T, input string) string {
		src, err := topology.Open(t.Context(), "-", strings.NewReader(input))
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		docs, diags := documents.Read(src, false)
		if HasErrors(diags) || docs.Topology == nil {
			t.Fatalf("not read:\n%s", listed(diags))
		}
		topo, pol, err := docs.Texts(false)
		if err != nil {
			t.Fatal(err)
		}
		// The default ports are many.
		pol = strings.ReplaceAll(pol, defaultPorts, "          DEFAULT\n")
		var b strings.Builder
		b.WriteString(topo + "# policy\n" + strings.TrimPrefix(pol, "apiVersion: c9s.dev/v1\nkind: Policy\n"))
		for _, name := range slices.Sorted(maps.Keys(docs.Files)) {
			f := docs.Files[name]
			fmt.Fprintf(&b, "# %s: mode %o, secret %t, %q%s\n", name, f.Mode, f.Secret, f.Data, f.URL+f.Digest)
		}
		for _, reg := range docs.Registries {
			fmt.Fprintf(&b, "# registry %s: plain HTTP %t, %d bytes of certificates\n", reg.Host, reg.PlainHTTP, len(reg.CA))
		}
		return b.String() + listed(diags)
	})
}

// renderedObjects renders a lab and returns its objects, without the name of the source.
func renderedObjects(t *testing.T, in Input) []string {
	t.Helper()
	c, err := Compile(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	planner, err := ChoosePlanner("builtin", "", c.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	out, diags, err := c.Render(t.Context(), RenderOptions{
		Options: render.Options{Image: "example.net/c9s:1", Version: "test", WireKey: bytes.Repeat([]byte{1}, 32)}, AllowMissing: in.AllowMissing,
		Plan: func(ctx context.Context, only map[string]bool) (map[string]*plan.Plan, []diag.Diagnostic, error) {
			return c.Plan(ctx, planner, only)
		},
	})
	if err != nil || out == nil {
		t.Fatalf("%v\n%s", err, listed(diags))
	}
	objects := make([]string, 0, len(out.Objects))
	for _, o := range out.Objects {
		data, err := json.MarshalIndent(o.Object, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, strings.ReplaceAll(string(data), `"c9s.dev/source": "`+filepath.Base(c.Source.Name)+`"`, `"c9s.dev/source": ""`))
	}
	if len(objects) < 5 {
		t.Fatalf("only %d objects", len(objects))
	}
	return objects
}

// TestDocumentPairs renders labs that are written twice, as documents and as a topology with
// a policy. The objects are the same.
func TestDocumentPairs(t *testing.T) {
	dirs, err := filepath.Glob("testdata/documents/pairs/*")
	if err != nil || len(dirs) < 3 {
		t.Fatalf("%d pairs, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			plain := t.TempDir()
			if err := os.CopyFS(plain, os.DirFS(filepath.Join(dir, "topology"))); err != nil {
				t.Fatal(err)
			}
			readOnly(t, filepath.Join(plain, "files"))
			want := renderedObjects(t, Input{Ref: plain, Namespace: "labs"})
			got := renderedObjects(t, Input{Ref: filepath.Join(dir, "documents")})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-topology +documents:\n%s", diff)
			}
		})
	}
}

// readOnly gives files the modes that ConfigMaps give them. Git does not keep them.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(name, info.Mode()&^0o222)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAdopt: addresses and ids in the status are kept, for Nodes and Links and for a
// Topology whose names Kubernetes cannot carry. An earlier render's values win.
func TestAdopt(t *testing.T) {
	const nodes = `apiVersion: c9s.run/v1alpha1
kind: Node
metadata: {name: r1, namespace: labs, labels: {c9s.run/topologyOwner: lab}}
spec: {kind: linux, image: "alpine:3"}
status: {directManagement: {interfaceName: eth0, ipv4: 172.20.20.77/24, ipv6: "3fff:172:20:20::99/64"}}
---
apiVersion: c9s.run/v1alpha1
kind: Node
metadata: {name: r2, namespace: labs, labels: {c9s.run/topologyOwner: lab}}
spec: {kind: linux, image: "alpine:3"}
status: {directManagement: {interfaceName: eth0, ipv4: 10.9.9.9/24}}
---
apiVersion: c9s.run/v1alpha1
kind: Link
metadata: {name: l, namespace: labs, labels: {c9s.run/topologyOwner: lab}}
spec: {endpointA: {nodeName: r2, interfaceName: eth1}, endpointB: {nodeName: r1, interfaceName: eth1}}
status: {tunnelID: 4711}
`
	const topo = `apiVersion: c9s.run/v1alpha1
kind: Topology
metadata: {name: lab, namespace: labs}
spec:
  definition:
    containerlab: |
      topology:
        defaults: {kind: linux, image: "alpine:3"}
        nodes: {R1: , r2: }
        links: [{endpoints: ["R1:eth1", "r2:eth1"]}]
---
`
	for name, c := range map[string]struct{ input, first string }{"nodes": {nodes, "r1"}, "topology": {topo + nodes, "R1"}} {
		t.Run(name, func(t *testing.T) {
			got, err := Compile(t.Context(), Input{Ref: "-", Stdin: strings.NewReader(c.input), Adopt: true})
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			pools := got.Lab.Allocations.Pools
			if HasErrors(got.Diags) || pools["mgmt-ipv4"][c.first] != "172.20.20.77" || pools["mgmt-ipv6"][c.first] != "3fff:172:20:20::99" || pools["wire"][c.first+":eth1 r2:eth1"] != "4711" {
				t.Errorf("%v\n%s", pools, listed(got.Diags))
			}
			if !strings.Contains(listed(got.Diags), "and not its old address 10.9.9.9 [not-adopted]") {
				t.Errorf("no warning of an address outside the subnet:\n%s", listed(got.Diags))
			}
			again, err := Compile(t.Context(), Input{Ref: "-", Stdin: strings.NewReader(c.input)})
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if again.Lab.Allocations.Pools["wire"][c.first+":eth1 r2:eth1"] == "4711" {
				t.Error("adopted without --adopt")
			}
		})
	}
	if _, err := Compile(t.Context(), Input{Ref: "-", Stdin: strings.NewReader("name: x"), Adopt: true}); err == nil {
		t.Error("--adopt of a topology file is no error")
	}
	c, err := Compile(t.Context(), Input{Ref: "-", Stdin: strings.NewReader(strings.ReplaceAll(nodes, "status:", "#")), Adopt: true})
	if err != nil || !strings.Contains(listed(c.Diags), "[document-adopt]") {
		t.Errorf("nothing to adopt is not reported: %v", err)
	}
}

// TestDocumentSecrets: what is in a Secret never gets into a ConfigMap, not even when the
// policy beside the documents has patterns of its own.
func TestDocumentSecrets(t *testing.T) {
	for _, o := range renderedObjects(t, Input{Ref: "testdata/documents/pairs/secrets/documents"}) {
		if strings.Contains(o, "s3cr3t") || strings.Contains(o, `"kind": "ConfigMap"`) && strings.Contains(o, "czNjcjN0") {
			t.Errorf("the secret is in\n%.300s", o)
		}
	}
}

// TestDocumentFiles: positions name the file of the folder, and files of URLs are checked.
func TestDocumentFiles(t *testing.T) {
	dir := t.TempDir()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	node := func(name, more string) string {
		return "apiVersion: c9s.run/v1alpha1\nkind: Node\nmetadata: {name: " + name + ", namespace: labs}\nspec:\n  kind: linux\n  image: alpine:3\n" + more
	}
	const sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	for name, text := range map[string]string{
		"a.yaml":      node("a", "  filesFromURL: [{filePath: /etc/x, url: "+server.URL+", digest: \"sha256:"+sum+"\"}]\n"),
		"b.yml":       node("b", "  colour: red\n"),
		"c.yaml":      node("c", "  filesFromURL: [{filePath: /etc/x, url: "+server.URL+", digest: \"sha256:"+strings.Repeat("0", 64)+"\"}]"),
		"values.yaml": "a: b\n", "kustomization.yaml": "resources: []\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Compile(t.Context(), Input{Ref: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := strings.ReplaceAll(listed(c.Diags), filepath.ToSlash(dir), "DIR")
	for _, want := range []string{
		"DIR/b.yml:7:3: error: unknown key \"colour\" in topology.nodes.b [unknown-field]",
		"DIR/c.yaml:7:42: error: the file has the digest sha256:" + sum + " and not sha256:000",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if string(c.Documents.Files["files/a/etc/x"].Data) != "hello" {
		t.Errorf("not fetched: %v", c.Documents.Files)
	}
}
