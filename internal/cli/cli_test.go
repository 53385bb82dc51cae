package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// run calls the command line with the built-in planner's environment.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return runWith(t, "", args...)
}

func runWith(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(args, IO{In: strings.NewReader(stdin), Out: &out, Err: &errs})
	return out.String(), errs.String(), code
}

const (
	demoTopo     = "../../testdata/demo/demo.clab.yml"
	featuresTopo = "../../testdata/features/features.clab.yml"
	oneNode      = "name: one\ntopology:\n  nodes:\n    R1: {kind: linux, image: alpine:3}\n"
)

// TestExitCodes has one call of each kind.
func TestExitCodes(t *testing.T) {
	empty := t.TempDir()
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{nil, ExitOK, ""},
		{[]string{"render", demoTopo}, ExitOK, ""},
		{[]string{"version"}, ExitOK, ""},
		{[]string{"render", filepath.Join(empty, "none.yml")}, ExitFailure, "no such file"},
		{[]string{"render", empty}, ExitFailure, "there is no *.clab.yml"},
		{[]string{"render", demoTopo, "--overlay", filepath.Join(empty, "none")}, ExitFailure, "none"},
		{[]string{"render", demoTopo, "--policy", filepath.Join(empty, "none.yaml")}, ExitFailure, "no such file"},
		{[]string{"render", demoTopo, "--only", "R9"}, ExitFailure, "R9"},
		{[]string{"render", demoTopo, "-n", "Not_Legal"}, ExitFailure, "is not a valid namespace name"},
		{[]string{"render", demoTopo, "-n", "kube-system"}, ExitFailure, "reserved for Kubernetes"},
		{[]string{"render", demoTopo, "--planner", "hooks", "--planner-path", filepath.Join(empty, "none")}, ExitFailure, "none"},
		{[]string{"plan", demoTopo, "--node", "R9"}, ExitFailure, `has no node "R9"`},
		{[]string{"explain", "nosuchfield"}, ExitFailure, "is neither a field"},
		{[]string{"nosuchcommand"}, ExitUsage, "unknown command"},
		{[]string{"completion", "tcsh"}, ExitUsage, "unknown command"},
		{[]string{"render", "--nosuchflag"}, ExitUsage, "unknown flag"},
		{[]string{"render", "a", "b"}, ExitUsage, "at most 1 arg"},
		{[]string{"render", demoTopo, "-t", demoTopo}, ExitUsage, "given twice"},
		{[]string{"render", demoTopo, "--format", "xml"}, ExitUsage, "use yaml or json"},
		{[]string{"render", demoTopo, "--format", "json", "-o", empty}, ExitUsage, "standard output"},
		{[]string{"render", demoTopo, "--only", "R1", "-o", empty}, ExitUsage, "a folder holds the whole lab"},
		{[]string{"render", demoTopo, "--map-image", "nothing"}, ExitUsage, "write FROM=TO"},
		{[]string{"render", demoTopo, "--map-file", "nothing"}, ExitUsage, "write FROM=TO"},
		{[]string{"render", demoTopo, "--planner", "magic"}, ExitUsage, "use auto, hooks or builtin"},
		{[]string{"graph", demoTopo, "-o", "png"}, ExitUsage, "use one of dot, drawio, html"},
		{[]string{"render", demoTopo, "-o", "yaml"}, ExitUsage, "--output is a folder"},
		{[]string{"render", demoTopo, "-o", demoTopo}, ExitUsage, "it is a file"},
		{[]string{"render", demoTopo, "-o", filepath.Join(empty, "manifests.yaml")}, ExitUsage, "for a single file use 'c9s render ... >"},
		{[]string{"render", ""}, ExitUsage, "the argument is empty"},
		{[]string{"validate", ""}, ExitUsage, "the argument is empty"},
		{[]string{"destroy", ""}, ExitUsage, "the argument is empty"},
		{[]string{"kinds", "-o", "xml"}, ExitUsage, "use json or wide"},
		{[]string{"plan", demoTopo, "-o", "xml"}, ExitUsage, "use yaml or json"},
		{[]string{"validate", demoTopo, "-o", "xml"}, ExitUsage, "use json"},
		{[]string{"version", "-o", "xml"}, ExitUsage, "use json"},
	} {
		stdout, stderr, code := run(t, tt.args...)
		if code != tt.code || !strings.Contains(stderr, tt.says) {
			t.Errorf("%v: exit code %d, want %d with %q:\n%s", tt.args, code, tt.code, tt.says, stderr)
		}
		if tt.code != ExitOK && stdout != "" {
			t.Errorf("%v: standard output has %.200q", tt.args, stdout)
		}
		if tt.code == ExitUsage && !strings.Contains(stderr, "--help' for usage") {
			t.Errorf("%v: nothing says how to get help:\n%s", tt.args, stderr)
		}
	}
}

// TestTopologyByEveryWay reads one lab from a file, a folder, the current folder,
// standard input and the flag.
// TestVarsMissing: a variables file that was named must be there, template or not.
func TestVarsMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("t.clab.yml", []byte("name: t\ntopology:\n  nodes:\n    a: {kind: linux, image: b}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"validate", "render"} {
		out, errs, code := run(t, command, "t.clab.yml", "--vars", "nowhere.yml", "--planner", "builtin")
		if code != ExitFailure || !strings.Contains(errs, "reading the variables file: open nowhere.yml: no such file or directory") || strings.Contains(out, "apiVersion") {
			t.Errorf("%s: exit code %d\n%s%s", command, code, out, errs)
		}
	}
}

func TestTopologyByEveryWay(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "one.clab.yml"), []byte(oneNode), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	want := ""
	for _, args := range [][]string{{"render", "one.clab.yml"}, {"render"}, {"render", "."}, {"render", "-t", "one.clab.yml"}, {"render", "-"}, {"render", "-o", "-"}} {
		stdout, stderr, code := runWith(t, oneNode, args...)
		if code != ExitOK {
			t.Fatalf("%v: %s", args, stderr)
		}
		stdout = strings.ReplaceAll(stdout, "stdin.clab.yml", "one.clab.yml")
		stdout = strings.ReplaceAll(strings.ReplaceAll(stdout, "<stdin>", "one.clab.yml"), `"`, "")
		if want == "" {
			want = stdout
		}
		if diff := cmp.Diff(want, stdout); diff != "" {
			t.Errorf("%v differs:\n%s", args, diff)
		}
	}
}

// TestFromAnywhere: how a topology is named makes no difference to the bytes.
func TestFromAnywhere(t *testing.T) {
	folder, err := filepath.Abs(filepath.Dir(featuresTopo))
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := run(t, "render", featuresTopo)
	for _, topo := range []string{filepath.Join(folder, "features.clab.yml"), folder, filepath.Dir(featuresTopo)} {
		if got, stderr, code := run(t, "render", topo); code != ExitOK || got != want {
			t.Errorf("%s: exit %d, the same bytes: %v\n%s", topo, code, got == want, stderr)
		}
	}
	t.Chdir(folder)
	if got, _, _ := run(t, "render"); got != want {
		t.Error("the current folder gives other bytes")
	}
}

// TestDemoGolden holds the demo lab's whole output.
func TestDemoGolden(t *testing.T) {
	stdout, stderr, code := run(t, "render", demoTopo, "--planner", "builtin", "--image", "ghcr.io/c9s-lab/c9s:test")
	if code != ExitOK {
		t.Fatal(stderr)
	}
	const golden = "testdata/demo.golden.yaml"
	if *update {
		if err := os.WriteFile(golden, []byte(stdout), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), stdout); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// documents decodes a stream strictly and returns "kind/name" of each object.
func documents(t *testing.T, stream string) []string {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var out []string
	for _, doc := range strings.Split(stream, "\n---\n") {
		obj, gvk, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		out = append(out, gvk.Kind+"/"+obj.(interface{ GetName() string }).GetName())
	}
	return out
}

// TestFeatures renders the lab that has one of everything.
func TestFeatures(t *testing.T) {
	stdout, stderr, code := run(t, "render", featuresTopo, "--planner", "builtin")
	if code != ExitOK {
		t.Fatal(stderr)
	}
	got := documents(t, stdout)
	for _, want := range []string{
		"Namespace/features", "NetworkPolicy/c9s-nodes", "Role/c9s-controller", "Deployment/c9s-controller",
		"Deployment/spine1", "Deployment/leaf-1", "Deployment/vm-1", "Deployment/chassis", "Deployment/lan", "Deployment/srv1", "Deployment/srv2", "Deployment/lonely",
		"Service/c9s-nodes", "Service/www", "ConfigMap/srv1-links", "PersistentVolumeClaim/srv1-data",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, not := range []string{"Deployment/sidekick", "ConfigMap/sidekick-links"} {
		if slices.Contains(got, not) {
			t.Errorf("there is a %s, though the node shares a Pod", not)
		}
	}
	if strings.Contains(stdout, "not a licence") || strings.Contains(stdout, "kind: Secret") {
		t.Error("a licence is in the stream")
	}
	if !strings.Contains(stderr, "omitted (licences, keys)") {
		t.Errorf("no message says that Secrets are omitted:\n%s", stderr)
	}
	with, stderr, code := run(t, "render", featuresTopo, "--planner", "builtin", "--with-secrets")
	if code != ExitOK || !strings.Contains(with, "kind: Secret") || !strings.Contains(stderr, "do not commit it") {
		t.Errorf("--with-secrets: exit code %d\n%s", code, stderr)
	}
	without, _, _ := run(t, "render", featuresTopo, "--planner", "builtin", "--no-controller")
	if slices.ContainsFunc(documents(t, without), func(s string) bool { return strings.HasSuffix(s, "/c9s-controller") }) {
		t.Error("--no-controller leaves the controller in")
	}
	only, _, _ := run(t, "render", featuresTopo, "--planner", "builtin", "--only", "leaf_1,lan")
	var deployments []string
	for _, d := range documents(t, only) {
		if strings.HasPrefix(d, "Deployment/") {
			deployments = append(deployments, d)
		}
	}
	if diff := cmp.Diff([]string{"Deployment/c9s-controller", "Deployment/lan", "Deployment/leaf-1"}, deployments); diff != "" {
		t.Errorf("--only: %s", diff)
	}
	list, _, _ := run(t, "render", featuresTopo, "--planner", "builtin", "--format", "json")
	var parsed struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal([]byte(list), &parsed); err != nil || parsed.Kind != "List" || len(parsed.Items) != len(got) {
		t.Errorf("JSON: %v, %s with %d items, want %d", err, parsed.Kind, len(parsed.Items), len(got))
	}
}

// TestFolder renders into a folder again and again, as a user who edits would.
// A bind of the lab's own folder does not take what was rendered into it along: the
// same bytes again, and no Secret in a ConfigMap.
func TestRenderIntoABoundFolder(t *testing.T) {
	for _, output := range []string{"out", ".", "deep/er"} {
		dir := t.TempDir()
		text := "name: own\ntopology:\n  nodes:\n    R1: {kind: linux, image: alpine:3, license: lic.key, binds: ['.:/work']}\n"
		for name, data := range map[string]string{"own.clab.yml": text, "lic.key": "LICENCE-4711", "deep/mine.txt": "kept"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out := filepath.Join(dir, output)
		var before string
		for i := range 3 {
			_, stderr, code := run(t, "render", filepath.Join(dir, "own.clab.yml"), "-o", out, "--planner", "builtin")
			if code != ExitOK {
				t.Fatal(stderr)
			}
			node, err := os.ReadFile(filepath.Join(out, "nodes", "r1.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 && (before != string(node) || !strings.Contains(stderr, " 0 files written")) {
				t.Errorf("-o %s: the next render is another one: %s", output, stderr)
			}
			before = string(node)
			if !strings.Contains(before, "kept") || strings.Contains(before, "secrets_lab.yaml") || strings.Contains(before, "4711") {
				t.Errorf("-o %s: the node's files are\n%s", output, before)
			}
		}
	}
}

// A folder holds one lab.
func TestFolderOfAnotherLab(t *testing.T) {
	out := filepath.Join(t.TempDir(), "m")
	if _, stderr, code := runWith(t, oneNode, "render", "-", "-o", out); code != ExitOK {
		t.Fatal(stderr)
	}
	_, stderr, code := runWith(t, strings.Replace(oneNode, "name: one", "name: two", 1), "render", "-", "-o", out)
	if code != ExitFailure || !strings.Contains(stderr, `holds the lab "one", but this is "two"`) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if err := os.Truncate(filepath.Join(out, "lab.yaml"), 0); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := runWith(t, oneNode, "render", "-", "-o", out); code != ExitOK || !strings.Contains(stderr, "lab.yaml of an earlier render is missing or empty") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if err := os.WriteFile(filepath.Join(out, "lab.yaml"), []byte("<<<<<<< HEAD\na: b\n=======\na: c\n>>>>>>> x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := runWith(t, oneNode, "render", "-", "-o", out); code != ExitFailure || !strings.Contains(stderr, "resolve its conflict") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestFolder(t *testing.T) {
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	topo := filepath.Join(dir, "t.clab.yml")
	write := func(nodes ...string) {
		t.Helper()
		text := "name: t\ntopology:\n  defaults: {kind: linux, image: alpine:3}\n  nodes:\n"
		for _, n := range nodes {
			text += "    " + n + ":\n"
		}
		if err := os.WriteFile(topo, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	render := func() string {
		t.Helper()
		stdout, stderr, code := run(t, "render", topo, "-o", out, "--planner", "builtin")
		if code != ExitOK || stdout != "" {
			t.Fatalf("exit code %d, standard output %q\n%s", code, stdout, stderr)
		}
		return stderr
	}
	write("r1", "r2")
	render()
	r1, key := read("nodes/r1.yaml"), read("secrets/lab.yaml")
	if gitignore := read("secrets/.gitignore"); !strings.Contains(gitignore, "*") {
		t.Errorf("secrets/.gitignore is %q", gitignore)
	}
	if again := render(); !strings.Contains(again, "0 files written") {
		t.Errorf("a second render writes: %s", again)
	}
	own := filepath.Join(out, "nodes", "mine.yaml")
	if err := os.WriteFile(own, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	write("r0", "r2")
	render()
	write("r0", "r1", "r2")
	render()
	if diff := cmp.Diff(strip(r1), strip(read("nodes/r1.yaml"))); diff != "" {
		t.Errorf("r1 is another after it was away: its addresses were not kept back\n%s", diff)
	}
	if read("secrets/lab.yaml") != key {
		t.Error("the wire key changed")
	}
	write("r2")
	render()
	if _, err := os.Stat(filepath.Join(out, "nodes/r1.yaml")); err == nil {
		t.Error("the file of a node that is gone is still there")
	}
	if read("nodes/mine.yaml") != "mine" {
		t.Error("a file that c9s did not write was touched")
	}
	// A topology with an error leaves the folder as it is.
	before := read("nodes/r2.yaml")
	if err := os.WriteFile(topo, []byte("name: t\ntopology:\n  nodes:\n    r2: {kind: nonsense}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, code := run(t, "render", topo, "-o", out); code != ExitFailure || read("nodes/r2.yaml") != before {
		t.Errorf("exit code %d, or the folder was changed", code)
	}
}

// strip takes out the line numbers of the source, which edits above a node move.
func strip(yaml string) string {
	var out []string
	for line := range strings.Lines(yaml) {
		if !strings.Contains(line, "t.clab.yml:") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// TestOverlay runs a kustomize overlay over the result.
func TestOverlay(t *testing.T) {
	overlay := t.TempDir()
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(`
commonAnnotations:
  example.org/team: net
patches:
  - target: {kind: Deployment, name: r1}
    patch: |
      - op: add
        path: /spec/template/spec/priorityClassName
        value: lab
`), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := run(t, "render", demoTopo, "--planner", "builtin", "--overlay", overlay)
	if code != ExitOK {
		t.Fatal(stderr)
	}
	plain, _, _ := run(t, "render", demoTopo, "--planner", "builtin")
	if a, b := documents(t, plain), documents(t, stdout); len(a) != len(b) {
		t.Errorf("%d objects became %d", len(a), len(b))
	}
	if n := strings.Count(stdout, "priorityClassName: lab"); n != 1 {
		t.Errorf("%d Deployments were patched", n)
	}
	if !strings.Contains(stdout, "example.org/team: net") {
		t.Error("the annotation is not there")
	}
}

// TestOneMoreNodeChangesNoOther adds a node to a lab of a hundred.
func TestOneMoreNodeChangesNoOther(t *testing.T) {
	objects := func(nodes int) map[string]string {
		t.Helper()
		var b strings.Builder
		b.WriteString("name: t\ntopology:\n  defaults: {kind: nokia_srlinux, image: srl}\n  links:\n")
		for i := range 99 {
			b.WriteString("    - endpoints: [\"n" + itoa(i) + ":e1-1\", \"n" + itoa(i+1) + ":e1-2\"]\n")
		}
		b.WriteString("  nodes:\n")
		for i := range nodes {
			b.WriteString("    n" + itoa(i) + ":\n")
		}
		stdout, stderr, code := runWith(t, b.String(), "render", "-", "--planner", "builtin")
		if code != ExitOK {
			t.Fatal(stderr)
		}
		out := map[string]string{}
		names := documents(t, stdout)
		for i, doc := range strings.Split(stdout, "\n---\n") {
			out[names[i]] = doc
		}
		return out
	}
	before, after := objects(100), objects(101)
	var changed []string
	for name, doc := range before {
		if after[name] != doc {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	if diff := cmp.Diff([]string{"ConfigMap/c9s-allocations", "ConfigMap/c9s-directory", "ConfigMap/c9s-topology"}, changed); diff != "" {
		t.Errorf("objects that another node's coming changes: %s", diff)
	}
}

func itoa(i int) string {
	b, _ := json.Marshal(i)
	return string(b)
}

func TestMapImageAndMapFile(t *testing.T) {
	dir := t.TempDir()
	local := filepath.Join(dir, "local.conf")
	for name, text := range map[string]string{
		"t.clab.yml": "name: t\ntopology:\n  nodes:\n    r1: {kind: linux, image: 'alpine:3', binds: ['/gone/frr.conf:/etc/frr.conf']}\n",
		"local.conf": "the local file",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stdout, stderr, code := run(t, "render", filepath.Join(dir, "t.clab.yml"), "--planner", "builtin",
		"--map-image", "alpine=registry.example/alpine", "--map-image", "ghcr.io/*=registry.example/ghcr/*", "--map-file", "/gone/frr.conf="+local,
		"--map-image", "alpin=x", "--map-file", "/gone/fr.conf="+local)
	if code != ExitOK {
		t.Fatal(stderr)
	}
	for _, want := range []string{"image: registry.example/alpine:3\n", "image: registry.example/ghcr/c9s-lab/c9s:", "the local file"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the output has no %q", want)
		}
	}
	for _, want := range []string{"--map-image alpin=x has no effect", "--map-file /gone/fr.conf=" + local + " has no effect"} {
		if strings.Count(stderr, want) != 1 {
			t.Errorf("it is not reported once that %s:\n%s", want, stderr)
		}
	}
	if strings.Count(stderr, "has no effect") != 2 {
		t.Errorf("more fields are reported to have no effect:\n%s", stderr)
	}
}

func TestKindsExplainAndVersion(t *testing.T) {
	stdout, _, _ := run(t, "kinds")
	if !strings.Contains(stdout, "nokia_srlinux") || !strings.Contains(stdout, "k8s-kind") || strings.Contains(stdout, "LOGIN") {
		t.Errorf("kinds:\n%s", stdout)
	}
	if wide, _, _ := run(t, "kinds", "-o", "wide"); !strings.Contains(wide, "admin/NokiaSrl1!") {
		t.Errorf("kinds -o wide has no logins:\n%s", wide)
	}
	var kinds []struct{ Name string }
	stdout, _, _ = run(t, "kinds", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &kinds); err != nil || len(kinds) != 63 {
		t.Errorf("kinds -o json: %v, %d kinds, want 63", err, len(kinds))
	}
	stdout, _, _ = run(t, "explain", "topology.nodes.r1.binds")
	for _, want := range []string{"FIELD:        node.binds", "TREATMENT:    supported", "EXAMPLE:"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("explain has no %q:\n%s", want, stdout)
		}
	}
	for path, want := range map[string]string{
		"segments.forward":       "FIELD: segments.forward, of the policy file (c9s.yaml)\nTYPE:  list of text\nC9S:   forward are the protocols",
		"policy.external":        "    allow (true or false)\n        allow says whether",
		"profiles.set.resources": "TYPE:  mapping\n",
	} {
		if stdout, _, code := run(t, "explain", path); code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("explain %s: %d\n%s", path, code, stdout)
		}
	}
	if _, stderr, _ := run(t, "explain", "segments.isolated"); !strings.Contains(stderr, `did you mean "segments.isolate"?`) {
		t.Errorf("explain segments.isolated: %s", stderr)
	}
	if _, stderr, _ := run(t, "explain", "bindz"); !strings.Contains(stderr, `did you mean "binds"?`) {
		t.Errorf("explain bindz: %s", stderr)
	}
	var version map[string]string
	stdout, _, _ = run(t, "version", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &version); err != nil || version["containerlab"] != "0.79.0" || version["planner"] == "" {
		t.Errorf("version: %v, %v", err, version)
	}
}

func TestColourIsForTerminals(t *testing.T) {
	for _, color := range []bool{false, true} {
		var out, errs bytes.Buffer
		Main([]string{"validate", "-"}, IO{In: strings.NewReader("name: t\n"), Out: &out, Err: &errs, Color: color})
		if got := strings.Contains(errs.String(), "\x1b["); got != color {
			t.Errorf("colour %v: %q", color, errs.String())
		}
	}
}

// TestCompletionOffersNodes asks as a shell does.
func TestCompletionOffersNodes(t *testing.T) {
	for _, args := range [][]string{
		{"__complete", "plan", demoTopo, "--node", ""},
		{"__complete", "render", "-t", demoTopo, "--only", ""},
	} {
		out, _, code := run(t, args...)
		if code != ExitOK || !strings.HasPrefix(out, "PC1\tlinux\n") {
			t.Errorf("%v: exit code %d, %q", args, code, out)
		}
	}
	if out, _, _ := run(t, "__complete", "plan", "https://example.invalid/x.clab.yml", "--node", ""); out != ":4\n" {
		t.Errorf("a URL: %q, want nothing and no files", out)
	}
}

// The policy sets the MTU of one end of a link; the other end keeps the link's.
func TestMTUOfAnEnd(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"t.clab.yml": "name: t\ntopology:\n  defaults: {kind: linux, image: a}\n  nodes:\n    a:\n    b:\n  links:\n    - endpoints: [\"a:eth1\", \"b:eth1\"]\n",
		"c9s.yaml":   "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n- {name: p, match: {names: [a]}, links: [{mtu: 1400}]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stdout, stderr, code := run(t, "render", filepath.Join(dir, "t.clab.yml"), "--planner", "builtin")
	if code != ExitOK {
		t.Fatal(stderr)
	}
	for node, mtu := range map[string]string{"a": "1400", "b": "9500"} {
		line := regexp.MustCompile(`"name": "eth1", "node": "` + node + `",.* "mtu": (\d+),`).FindStringSubmatch(stdout)
		if line == nil || line[1] != mtu {
			t.Errorf("node %s: %q, want an MTU of %s", node, line, mtu)
		}
	}
}
