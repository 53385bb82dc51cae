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

	"github.com/c9s-lab/c9s/pkg/diag"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// corpusRefusals are the reasons for which a public lab may be refused, and how
// many labs of the corpus each refuses. docs/reference/topology.md explains them.
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

// minRendered is how many labs of the corpus must render.
const minRendered = 234

// oracle is what containerlab itself made of a lab.
type oracle struct {
	OK    bool           `json:"ok"`
	Nodes int            `json:"nodes"`
	Links int            `json:"links"`
	Kinds map[string]int `json:"kinds"`
}

// corpusDir finds the corpus beside the checkout.
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

// TestCorpus renders every public lab, and holds the counts against containerlab's.
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
	rendered, disagreeing := 0, 0
	refused := map[diag.Code][]string{}
	for _, id := range slices.Sorted(maps.Keys(labs)) {
		v := validateOne(t, labs[id])
		want := oracles[id]
		if want.OK && (v.Nodes != want.Nodes || v.Links != want.Links || !maps.Equal(v.Kinds, want.Kinds)) {
			disagreeing++
			t.Errorf("%s: %d nodes, %d links, %v; containerlab has %d, %d, %v", id, v.Nodes, v.Links, v.Kinds, want.Nodes, want.Links, want.Kinds)
		}
		if v.OK {
			rendered++
			renderTwice(t, id, labs[id])
			continue
		}
		for _, d := range v.Diagnostics {
			if d.Severity == diag.Error && !slices.Contains(refused[d.Code], id) {
				refused[d.Code] = append(refused[d.Code], id)
			}
			if _, documented := corpusRefusals[d.Code]; d.Severity == diag.Error && !documented {
				t.Errorf("%s is refused for a reason that is not documented: %s", id, d)
			}
		}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-24s %4d of %d\n", "rendered", rendered, len(labs))
	for _, code := range slices.Sorted(maps.Keys(refused)) {
		fmt.Fprintf(&table, "refused: %-15s %4d  %s\n", code, len(refused[code]), corpusRefusals[code])
	}
	fmt.Fprintf(&table, "%-24s %4d\n", "disagreeing", disagreeing)
	t.Log(table.String())
	if rendered < minRendered {
		t.Errorf("%d labs render, want at least %d", rendered, minRendered)
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

// renderTwice renders with all Secrets left out, compares the bytes of two runs,
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
