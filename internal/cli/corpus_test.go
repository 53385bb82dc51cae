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

// corpusReason is why a public lab is rejected.
type corpusReason struct {
	why string
	// elsewhere is who rejects the lab too: containerlab or Docker; "" for c9s alone.
	elsewhere string
}

// corpusReasons are the reasons of the labs in corpusFile. docs/reference/topology.md
// lists them.
var corpusReasons = map[string]corpusReason{
	"017-containerlab-k8s-kind01":                          {"k8s-kind makes clusters with Docker", ""},
	"080-containerlab-01-basic-k8s-kind":                   {"k8s-kind makes clusters with Docker", ""},
	"228-openperouter-multicluster":                        {"k8s-kind makes clusters with Docker", ""},
	"237-containerlab-simul-esi-datacenter":                {"a node controls the container engine by its socket", ""},
	"276-arista-ceos-ztp-de-arista-ceos-ztp-demo-containe": {"a node controls the container engine by its socket", ""},
	"270-sros-frr-ixp-lab-ixp":                             {"a partial startup-config of nokia_sros is typed over SSH from outside", ""},

	"081-containerlab-01-ext-container":       {"ext-container names a container that is not part of the lab", "containerlab, unless it runs"},
	"113-containerlab-topo11-ext-cont":        {"ext-container names a container that is not part of the lab", "containerlab, unless it runs"},
	"269-srl-k8s-anycast-la-srl-k8s-lab":      {"ext-container names a container that is not part of the lab", "containerlab, unless it runs"},
	"083-containerlab-02-shared-namespace":    {"network-mode names a container that is not part of the lab", "containerlab, unless it runs"},
	"284-index-cilium-egress-netmode":         {"network-mode names a container that is not part of the lab", "containerlab, unless it runs"},
	"105-containerlab-topo1":                  {"nodes without an image run as a user by name", "Docker: there is no image"},
	"106-containerlab-topo3":                  {"nodes without an image run as a user by name", "Docker: there is no image"},
	"107-containerlab-topo4":                  {"nodes without an image run as a user by name", "Docker: there is no image"},
	"110-containerlab-topo8-ansible-groups":   {"nodes without an image run as a user by name", "Docker: there is no image"},
	"111-containerlab-topo9":                  {"nodes without an image run as a user by name", "Docker: there is no image"},
	"108-containerlab-topo6":                  {"two links use one interface", "containerlab"},
	"256-clab-starter-topo-clab-starter-topo": {"an interface that the kind does not have", "containerlab"},
	"261-vscode-containerla-inheritance":      {"an interface that the kind does not have", "containerlab"},
	"134-srv6-labs-frr":                       {"a key that does not exist", "containerlab"},
	"241-freertr-containerl-rtr005":           {"a key that does not exist", "containerlab"},
	"267-rare-fod-rare-fod":                   {"a key that does not exist", "containerlab"},
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
	alone := 0
	for id := range rejectedLabs(t) {
		if corpusReasons[id].elsewhere == "" {
			alone++
		}
	}
	if alone > 6 {
		t.Errorf("%d of %d labs are rejected by c9s alone", alone, len(labs))
	}
}

// rejectedLabs are the labs of corpusFile with their codes.
func rejectedLabs(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if id, codes, ok := strings.Cut(strings.TrimSpace(line), " "); ok && id != "#" {
			out[id] = codes
		}
	}
	return out
}

// TestCorpusReasons: every lab that is rejected has its reason in the documentation.
func TestCorpusReasons(t *testing.T) {
	rejected := rejectedLabs(t)
	for id := range rejected {
		if corpusReasons[id].why == "" {
			t.Errorf("%s is rejected without a reason", id)
		}
	}
	for id := range corpusReasons {
		if rejected[id] == "" {
			t.Errorf("%s has a reason and is not rejected", id)
		}
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
