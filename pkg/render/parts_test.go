package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/c9s-lab/c9s/internal/packed"
	"github.com/c9s-lab/c9s/pkg/apicheck"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/plan"
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

func TestMapImage(t *testing.T) {
	tests := []struct{ from, to, image, want string }{
		{"a/b:1", "c/d:2", "a/b:1", "c/d:2"},
		{"a/b:1", "c/d", "a/b:1", "c/d"},
		{"a/b", "c/d", "a/b:1", "c/d:1"},
		{"a/b", "c/d", "a/b@sha256:00", "c/d@sha256:00"},
		{"a/b", "c/d", "a/b:1@sha256:00", "c/d:1@sha256:00"},
		{"a/b", "c/d:2", "a/b:1", "c/d:2"},
		{"a/b", "c/d", "a/bc:1", "a/bc:1"},
		{"host:5000/a", "b", "host:5000/a:1", "b:1"},
		{"host:5000/a", "b", "host:5000/a", "b"},
		{"ghcr.io/*", "mirror/ghcr/*", "ghcr.io/x/y:1", "mirror/ghcr/x/y:1"},
		{"*", "mirror/*", "x:1", "mirror/x:1"},
		{"ghcr.io/*", "fixed:1", "ghcr.io/x", "fixed:1"},
		{"", "x", "a", "a"},
	}
	for _, test := range tests {
		rules := []ImageRule{{test.from, test.to}, {test.from, "second"}}
		if got := MapImage(rules[:1], test.image); got != test.want {
			t.Errorf("%s -> %s: %s became %s, want %s", test.from, test.to, test.image, got, test.want)
		}
		if got := MapImage(rules, test.image); got != test.want {
			t.Errorf("the first rule does not win: %s", got)
		}
	}
}

// TestLiteral undoes what the kubelet does to "$".
func TestLiteral(t *testing.T) {
	for _, s := range []string{"", "$", "$$", "$(A)", "$$(A)", "$A", "a$", "a$$b", "$$$", "$($(A))", "${A}", "$$$$(", "$("} {
		if got := expand(literal(s)); got != s {
			t.Errorf("%q arrives as %q", s, got)
		}
	}
}

// expand is what Kubernetes documents for "$(VAR)" with A=value.
func expand(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '$' || i+1 == len(s):
			b.WriteByte(s[i])
		case s[i+1] == '$':
			b.WriteByte('$')
			i++
		case strings.HasPrefix(s[i:], "$(A)"):
			b.WriteString("value")
			i += 3
		default:
			b.WriteByte('$')
		}
	}
	return b.String()
}

// TestPacker puts random files in and takes them out again; no object is too
// large for kubectl's annotation.
func TestPacker(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	binary := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	lines := func(n int) []byte {
		var b []byte
		for len(b) < n {
			b = fmt.Appendf(b, "interface <%d> \"é\" \\ %s\n", random.Uint32(), strings.Repeat("x", random.IntN(100)))
		}
		return b
	}
	files := map[string][]byte{
		"empty": nil, "one": []byte("1"), "big": binary(2_000_000), "text": lines(1_500_000), "a/b": lines(100), "a_b": lines(200),
		"line": bytes.Repeat([]byte("é"), 300_000), "edge": bytes.Repeat([]byte{'\n'}, 250_000), "dup1": lines(5), ".hidden": lines(10),
		strings.Repeat("long", 100): lines(10), "ünïcode": binary(10), "dup2": nil,
	}
	files["dup2"] = files["dup1"]
	for i := range 300 {
		files[fmt.Sprintf("many/%d", i)] = lines(random.IntN(5000))
	}
	p := newPacker(map[string]bool{})
	chunks := map[string][]string{}
	for name, data := range files {
		chunks[name] = p.put(name, data, sha256.Sum256(data), false)
	}
	all := map[string][]byte{}
	for i, b := range slices.Concat(p.bins, p.shared) {
		cm := &corev1.ConfigMap{TypeMeta: typeMeta("v1", "ConfigMap"), Data: b.text, BinaryData: b.binary}
		o := manifest.Object{Object: cm}
		cm.Name = fmt.Sprintf("x-%d", i)
		for _, d := range apicheck.Check([]manifest.Object{o}) {
			t.Error(d)
		}
		for key, text := range b.text {
			all[key] = []byte(text)
		}
		for key, data := range b.binary {
			all[key] = data
		}
	}
	for name, want := range files {
		var got []byte
		for _, chunk := range chunks[name] {
			got = append(got, all[chunk]...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%q does not come out as it went in", name)
		}
	}
	if !reflect.DeepEqual(chunks["dup1"], chunks["dup2"]) {
		t.Error("equal contents are kept twice")
	}
}

// TestLargeFile: a file of 2 MiB and a secret one arrive in several objects.
func TestLargeFile(t *testing.T) {
	l := newTestLab("large")
	_, p := l.node("r1", "linux")
	image := make([]byte, 2_000_000)
	for i := range image {
		image[i] = byte(i ^ i>>8 ^ i>>16)
	}
	p.Files = []plan.File{
		{Path: "image.bin", Mode: 0o644, Ref: l.file(image, false)},
		{Path: "licences", Mode: 0o600, Ref: l.file(bytes.Repeat([]byte("licence\n"), 50_000), true)},
	}
	out := l.mustRender(t)
	configMaps, secrets := 0, 0
	for _, o := range out.Objects {
		switch obj := o.Object.(type) {
		case *corev1.ConfigMap:
			if strings.HasPrefix(obj.Name, "c9s-file-") {
				configMaps++
			}
		case *corev1.Secret:
			secrets++
			if o.Group != "secrets/nodes/r1.yaml" || !o.Secret {
				t.Errorf("secret in %s", o.Group)
			}
		}
	}
	if configMaps < 10 || secrets < 2 {
		t.Errorf("%d ConfigMaps, %d Secrets", configMaps, secrets)
	}
}

func TestAllocationsReadBack(t *testing.T) {
	l := mesh(900, 3000)
	l.Allocations.Released = map[string]map[string]string{"wire": {"old": "9"}}
	var parts [][]byte
	for _, o := range l.mustRender(t).Objects {
		if cm, ok := o.Object.(*corev1.ConfigMap); ok && strings.HasPrefix(cm.Name, "c9s-allocations") {
			for _, text := range cm.Data {
				parts = append(parts, []byte(text))
			}
		}
	}
	got, err := lab.JoinAllocations(parts...)
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) < 2 || !reflect.DeepEqual(got, l.Allocations) {
		t.Errorf("%d parts do not give what was written", len(parts))
	}
	if _, err := lab.JoinAllocations([]byte(`{"version":"v0"}`)); err == nil {
		t.Error("an unknown version is read")
	}
}

// directory is the directory in a lab's objects.
func directory(t *testing.T, l *testLab) (*corev1.ConfigMap, contract.Directory) {
	t.Helper()
	for _, o := range l.mustRender(t).Objects {
		if cm, ok := o.Object.(*corev1.ConfigMap); ok && cm.Name == contract.DirectoryConfigMap {
			text, err := packed.Text(cm.Data, cm.BinaryData, contract.DirectoryFile, 8<<20)
			if err != nil {
				t.Fatal(err)
			}
			var d contract.Directory
			if err := json.Unmarshal(text, &d); err != nil {
				t.Fatal(err)
			}
			return cm, d
		}
	}
	t.Fatal("there is no directory")
	return nil, contract.Directory{}
}

// TestDirectory: one ConfigMap has it, however large the lab: packed where the text would not
// fit next to a copy of itself, which kubectl apply keeps.
func TestDirectory(t *testing.T) {
	for _, n := range []int{2, 1200, 10_000} {
		cm, d := directory(t, mesh(n, 0))
		size := len(cm.Data[contract.DirectoryFile]) + len(cm.BinaryData[contract.DirectoryFile+packed.Suffix])
		if len(d.Nodes) != n || len(cm.Data)+len(cm.BinaryData) != 1 || size > 400_000 {
			t.Errorf("%d nodes: %d in the directory, %d bytes", n, len(d.Nodes), size)
		}
		if hosts := bytes.Count(d.Hosts(), []byte("\n")); hosts != 2*n {
			t.Errorf("%d hosts lines for %d nodes", hosts, n)
		}
	}
}

// TestDirectorySuffix: the policy can have nodes called NODE.mgmt alone.
func TestDirectorySuffix(t *testing.T) {
	l := mesh(2, 0)
	l.Nodes[0].Aliases = []string{"core"}
	l.SuffixMgmtNames = true
	_, d := directory(t, l)
	for line := range strings.Lines(string(d.Hosts())) {
		if names := strings.Fields(line)[1:]; len(names) != 1 || !strings.HasSuffix(names[0], ".mgmt") {
			t.Errorf("names %q", names)
		}
	}
}

func TestDirectoryFull(t *testing.T) {
	l := mesh(100, 0)
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range l.Nodes {
		var name strings.Builder
		for name.Len() < 50_000 {
			fmt.Fprintf(&name, "%x", random.Uint64())
		}
		n.Aliases = []string{name.String()}
	}
	out, diags := l.render(t)
	if out != nil || !strings.Contains(diagText(diags), string(CodeDirectorySize)) {
		t.Error("5 MB of names are no error")
	}
}

func TestBridgeInterface(t *testing.T) {
	for name, want := range map[string]string{"br0": "br0", "br0|r1": "br0", "|x": "|x", "a/b": "a-b-" + contract.ShortDigest("a/b")[:6], "br|with/slash": "br"} {
		if got := bridgeInterface(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestVolumeNames: every name is a DNS label of its own, also where a path has no
// letter for it.
func TestVolumeNames(t *testing.T) {
	var v volumeSet
	seen := map[string]bool{}
	for _, target := range []string{"/a/b", "/a-b", "/é", "/ü", "/", strings.Repeat("/long", 30)} {
		name := v.add(target, "tmpfs-"+contract.Slug(target, 50), corev1.VolumeSource{})
		if errs := validation.IsDNS1123Label(name); len(errs) > 0 || seen[name] {
			t.Errorf("%s: %q, seen before %v: %v", target, name, seen[name], errs)
		}
		seen[name] = true
	}
}

func TestTmpfsSize(t *testing.T) {
	for text, want := range map[string]int64{"64m": 64 << 20, "1G": 1 << 30, "10k": 10240, "512": 512, "": 0, "50%": 0, "-1": 0, "9223372036854775807g": 0} {
		if got, ok := tmpfsSize(text); got != want || ok != (want > 0) {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// TestCertificate: material that comes later is optional, and asked for once.
func TestCertificate(t *testing.T) {
	l := newTestLab("cert")
	_, p := l.node("r1", "linux")
	p.Files = []plan.File{
		{Path: "a.key", Mode: 0o600, Certificate: "tls.key"}, {Path: "b.key", Mode: 0o600, Certificate: "tls.key"}, {Path: "tls", Mode: 0o644, Content: []byte("x")},
	}
	for _, o := range l.mustRender(t).Objects {
		d, ok := o.Object.(*appsv1.Deployment)
		if !ok || d.Name != "r1" {
			continue
		}
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Name == volumeFiles && len(v.Projected.Sources) != 2 {
				t.Errorf("%d sources", len(v.Projected.Sources))
			}
		}
	}
}

// TestSecretFiles: patterns meet the path in the device, or a folder above it.
func TestSecretFiles(t *testing.T) {
	tests := []struct {
		pattern string
		secret  []string
	}{
		{"/etc/app/key.pem", []string{"conf/key.pem"}},
		{"/etc/app", []string{"conf/key.pem", "conf/sub/x"}},
		{"/etc/app/*.pem", []string{"conf/key.pem"}},
		{"/etc/*/sub", []string{"conf/sub/x"}},
		{"/root/.token", []string{"token"}},
		{"/etc", []string{"conf/key.pem", "conf/sub/x"}},
		{"conf", nil},
		{"/other", nil},
	}
	for _, test := range tests {
		l := newTestLab("secret")
		n, p := l.node("r1", "linux")
		n.Policy.SecretFiles = []string{test.pattern}
		p.Containers[0].Mounts = []plan.Mount{{Target: "/etc/app", Path: "conf"}, {Target: "/root/.token", Path: "token"}}
		for _, name := range []string{"conf/key.pem", "conf/sub/x", "token", "unmounted"} {
			p.Files = append(p.Files, plan.File{Path: name, Mode: 0o600, Content: []byte(name)})
		}
		var got []string
		for _, o := range l.mustRender(t).Objects {
			if s, ok := o.Object.(*corev1.Secret); ok {
				for _, data := range s.Data {
					got = append(got, string(data))
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, test.secret) {
			t.Errorf("%s: %v, want %v", test.pattern, got, test.secret)
		}
	}
}

// TestEncryptWires: every Pod of a lab is reported the same.
func TestEncryptWires(t *testing.T) {
	l := newTestLab("demo")
	l.node("r1", "linux")
	l.node("r2", "linux")
	l.EncryptWires = true
	told := 0
	for _, o := range l.mustRender(t).Objects {
		cm, ok := o.Object.(*corev1.ConfigMap)
		if !ok || cm.Data[contract.LinksFile] == "" {
			continue
		}
		var doc contract.Links
		if err := json.Unmarshal([]byte(cm.Data[contract.LinksFile]), &doc); err != nil || !doc.Encrypt {
			t.Errorf("%s: %v %s", cm.Name, err, cm.Data[contract.LinksFile])
		}
		told++
	}
	if told != 2 {
		t.Errorf("%d Pods have links", told)
	}
}

// TestTopologyOfALargeLab: the links of 10,000 nodes, four a node, have room.
func TestTopologyOfALargeLab(t *testing.T) {
	links := make([]contract.TopologyLink, 40_000)
	for i := range links {
		links[i] = contract.TopologyLink{
			ID: contract.WireID(1<<23 + i), Kind: "wire", A: contract.TopologyEnd{Node: fmt.Sprintf("leaf%d", 10_000+i/4), Interface: "eth1"},
			B: &contract.TopologyEnd{Node: fmt.Sprintf("spine%d", 1_000+i%2_000), Interface: "eth11"},
		}
	}
	if n := len(splitTopology(links, largeObject, 0)); n == 0 || n > contract.TopologyParts {
		t.Errorf("they need %d ConfigMaps, and there is room for %d", n, contract.TopologyParts)
	}
}
