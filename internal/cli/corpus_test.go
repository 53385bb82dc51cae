package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// corpusRefusals are the reasons for which public labs are rejected.
// docs/reference/topology.md lists them.
var corpusRefusals = map[diag.Code]string{
	"kind-refused":       "ext-container or k8s-kind: containers outside the lab, a cluster made with Docker",
	"node-unknown":       "network-mode of a container outside the lab",
	"engine-socket":      "the container engine's socket is mounted",
	"interface-name":     "an interface that the kind does not have (containerlab deploys no such node either)",
	"endpoint-duplicate": "an interface is used by two links (containerlab deploys no such lab either)",
	"bad-address":        "a management address is not in the subnet",
	"user-not-numeric":   "a container's user is named and not numbered",
	"unknown-field":      "containerlab refuses the file too",

	"startup-config-partial": "containerlab types it into nokia_sros over SSH from outside; it was dropped without an error before",
}

// corpusFile lists the labs of the corpus that are rejected, each with its codes.
const corpusFile = "testdata/corpus.txt"

// oracle is what containerlab itself made of a lab.
type oracle struct {
	OK    bool           `json:"ok"`
	Nodes int            `json:"nodes"`
	Links int            `json:"links"`
	Kinds map[string]int `json:"kinds"`
}

// corpusDir finds the corpus next to the checkout.
func corpusDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../shared/corpus")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "INDEX.tsv")); err != nil {
		t.Skip("the corpus of public labs is not beside this checkout")
	}
	return dir
}

// corpusLabs are the topologies by the lab's id.
func corpusLabs(t *testing.T, dir string) map[string]string {
	t.Helper()
	index, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	labs := map[string]string{}
	for i, line := range strings.Split(strings.TrimSpace(string(index)), "\n") {
		if fields := strings.Split(line, "\t"); i > 0 {
			labs[fields[0]] = filepath.Join(dir, fields[0], filepath.FromSlash(fields[8]))
		}
	}
	return labs
}

// TestCorpus renders every public lab and compares its counts with containerlab's. The
// labs that are rejected, and why, are those of corpusFile.
func TestCorpus(t *testing.T) {
	dir := corpusDir(t)
	var oracles map[string]oracle
	data, err := os.ReadFile(filepath.Join(dir, "ORACLE.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &oracles); err != nil {
		t.Fatal(err)
	}
	labs := corpusLabs(t, dir)
	var rejected strings.Builder
	rejected.WriteString("# The labs of the corpus that are rejected, with the codes of their errors. All others render.\n")
	for _, id := range slices.Sorted(maps.Keys(labs)) {
		v := validateOne(t, labs[id])
		want := oracles[id]
		if want.OK && (v.Nodes != want.Nodes || v.Links != want.Links || !maps.Equal(v.Kinds, want.Kinds)) {
			t.Errorf("%s: %d nodes, %d links, %v; containerlab has %d, %d, %v", id, v.Nodes, v.Links, v.Kinds, want.Nodes, want.Links, want.Kinds)
		}
		if v.OK {
			renderTwice(t, id, labs[id])
			continue
		}
		codes := map[string]bool{}
		for _, d := range v.Diagnostics {
			if d.Severity != diag.Error {
				continue
			}
			codes[string(d.Code)] = true
			if _, documented := corpusRefusals[d.Code]; !documented {
				t.Errorf("%s is rejected for a reason that is not documented: %s", id, d)
			}
		}
		fmt.Fprintf(&rejected, "%s %s\n", id, strings.Join(slices.Sorted(maps.Keys(codes)), " "))
	}
	if *update {
		if err := os.WriteFile(corpusFile, []byte(rejected.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expected, err := os.ReadFile(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(expected), rejected.String()); diff != "" {
		t.Errorf("other labs are rejected, or for other reasons: -want +got\n%s", diff)
	}
}

func validateOne(t *testing.T, topo string) verdict {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Main([]string{"validate", topo, "--allow-missing", "--planner", "builtin", "-o", "json"}, IO{Out: &stdout, Err: &stderr})
	var verdicts []verdict
	if err := json.Unmarshal(stdout.Bytes(), &verdicts); err != nil || len(verdicts) != 1 {
		t.Fatalf("%s: %v\n%s", topo, err, stderr.String())
	}
	if (code == ExitOK) != verdicts[0].OK {
		t.Errorf("%s: exit code %d, ok %v", topo, code, verdicts[0].OK)
	}
	return verdicts[0]
}

// renderTwice renders with all Secrets omitted, compares the bytes of two runs,
// and decodes each object strictly into its API type.
func renderTwice(t *testing.T, id, topo string) {
	t.Helper()
	var first, second, stderr bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if code := Main([]string{"render", topo, "--allow-missing", "--planner", "builtin"}, IO{Out: out, Err: &stderr}); code != ExitOK {
			t.Fatalf("%s: exit code %d\n%s", id, code, stderr.String())
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("%s: two renders differ", id)
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	objects := 0
	for _, doc := range strings.Split(first.String(), "\n---\n") {
		if _, _, err := decoder.Decode([]byte(doc), nil, nil); err != nil {
			t.Errorf("%s: %v\n%.300s", id, err, doc)
		}
		if len(doc) > 1<<20 {
			t.Errorf("%s: an object of %d bytes", id, len(doc))
		}
		objects++
	}
	if objects < 5 {
		t.Errorf("%s: only %d objects", id, objects)
	}
}
