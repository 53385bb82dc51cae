package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/c9s-lab/c9s/pkg/apicheck"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/manifest"
)

// folderHeader starts every file of a rendered folder.
const folderHeader = "# Rendered by c9s. Do not edit: the next render replaces this file.\n"

func folderOf(t *testing.T, l *testLab) map[string][]byte {
	t.Helper()
	files, err := manifest.Folder(l.mustRender(t).Objects)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFolder(t *testing.T) {
	files := folderOf(t, policy())
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{
		"controller.yaml", "kustomization.yaml", "lab.yaml", "namespace.yaml", "nodes/vm.yaml",
		"secrets/.gitignore", "secrets/kustomization.yaml", "secrets/lab.yaml", "secrets/namespace.yaml", "secrets/nodes/vm.yaml",
	}
	if !slices.Equal(names, want) {
		t.Errorf("files %v", names)
	}
	for name, data := range files {
		if !strings.HasPrefix(string(data), folderHeader) {
			t.Errorf("%s has no header", name)
		}
		if !strings.HasPrefix(name, "secrets/") && strings.Contains(string(data), "kind: Secret\n") {
			t.Errorf("%s has a Secret", name)
		}
	}
	golden(t, "kustomization.yaml", files["kustomization.yaml"])
}

// TestKustomize: kustomize itself takes the folder, and loses nothing.
func TestKustomize(t *testing.T) {
	out := policy().mustRender(t)
	files, err := manifest.Folder(out.Objects)
	if err != nil {
		t.Fatal(err)
	}
	memory := filesys.MakeFsInMemory()
	for name, data := range files {
		if err := memory.WriteFile("/x/"+name, data); err != nil {
			t.Fatal(err)
		}
	}
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "/x")
	if err != nil {
		t.Fatal(err)
	}
	secrets := slices.DeleteFunc(slices.Clone(out.Objects), func(o manifest.Object) bool { return !o.Secret })
	if result.Size() != len(out.Objects)-len(secrets) {
		t.Errorf("%d objects, want %d", result.Size(), len(out.Objects)-len(secrets))
	}
}

func TestWriteFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	files := folderOf(t, sharedPod())
	first, err := manifest.WriteFolder(dir, files)
	if err != nil || len(first.Written) != len(files) {
		t.Fatalf("%+v %v", first, err)
	}
	stamp := func(name string) os.FileInfo {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	before := stamp("lab.yaml")
	again, err := manifest.WriteFolder(dir, files)
	if err != nil || len(again.Unchanged) != len(files) || len(again.Written)+len(again.Removed) > 0 {
		t.Fatalf("%+v %v", again, err)
	}
	if !os.SameFile(before, stamp("lab.yaml")) {
		t.Error("an unchanged file was written again")
	}

	// An edited file is replaced, one that is not wanted goes, a foreign one stays.
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("nodes/a.yaml", "edited\n")
	put("README.md", "mine\n")
	delete(files, "nodes/c.yaml")
	third, err := manifest.WriteFolder(dir, files)
	if err != nil || !slices.Equal(third.Written, []string{"nodes/a.yaml"}) || !slices.Equal(third.Removed, []string{"nodes/c.yaml"}) {
		t.Fatalf("%+v %v", third, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
		t.Error(err)
	}

	// A foreign file in the way: nothing is written.
	put("nodes/new.yaml", "mine\n")
	files["nodes/new.yaml"] = []byte(folderHeader + "x: 1\n")
	files["aaa.yaml"] = []byte(folderHeader)
	_, err = manifest.WriteFolder(dir, files)
	var foreign *manifest.ForeignFileError
	if !errors.As(err, &foreign) || !slices.Equal(foreign.Files, []string{"nodes/new.yaml"}) {
		t.Fatalf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "aaa.yaml")); err == nil {
		t.Error("something was written all the same")
	}

	// Without the manifest, the header identifies the files of c9s.
	if err := os.Remove(filepath.Join(dir, "nodes/new.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, contract.FolderList)); err != nil {
		t.Fatal(err)
	}
	files["lab.yaml"] = append(files["lab.yaml"], "# more\n"...)
	if _, err := manifest.WriteFolder(dir, files); err != nil {
		t.Error(err)
	}
}

func TestWriteFolderSecrets(t *testing.T) {
	dir := t.TempDir()
	if _, err := manifest.WriteFolder(dir, folderOf(t, policy())); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "secrets/nodes/vm.yaml"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	// The secrets are gone with the next render that has none.
	result, err := manifest.WriteFolder(dir, folderOf(t, sharedPod()))
	if err != nil || !slices.Contains(result.Removed, "secrets/nodes/vm.yaml") {
		t.Errorf("%+v %v", result, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "secrets")); err == nil {
		t.Error("the empty folder is still there")
	}
}

func overlay(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOverlay(t *testing.T) {
	l := policy()
	out := l.mustRender(t)
	dir := overlay(t, map[string]string{
		"kustomization.yaml": `
resources: [../base, extra/cm.yaml, widget.yaml]
namespace: elsewhere
patches:
- path: patch.yaml
  target: {kind: Deployment, labelSelector: c9s.dev/component=node}
`,
		"patch.yaml":    "- {op: replace, path: /spec/template/spec/terminationGracePeriodSeconds, value: 99}\n",
		"extra/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {a: \"1\"}\n",
		"widget.yaml":   "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {b: 1, a: 2.5}\nstatus: {x: 1}\n",
	})
	objs, err := manifest.ApplyOverlay(out.Objects, dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(objs) != len(out.Objects)+2 {
		t.Errorf("%d objects, want %d", len(objs), len(out.Objects)+2)
	}
	groups := map[string]string{}
	for _, o := range out.Objects {
		groups[keyOf(t, o)] = o.Group
	}
	seen := false
	for _, o := range objs {
		if o.Kind() == "Namespace" {
			continue
		}
		key := keyOf(t, o)
		if ns := o.Object.(metav1.Object).GetNamespace(); ns != "elsewhere" {
			t.Errorf("%s is in %s", key, ns)
		}
		if want, ok := groups[key]; ok && want != o.Group {
			t.Errorf("%s is in %s, was in %s", key, o.Group, want)
		}
		if d, ok := o.Object.(*appsv1.Deployment); ok && d.Name == "vm" {
			seen = *d.Spec.Template.Spec.TerminationGracePeriodSeconds == 99
		}
		if text := jsonOf(t, o); o.Kind() == "Widget" && (o.Group != "overlay.yaml" || strings.Contains(text, "status")) {
			t.Errorf("%s %s", o.Group, text)
		}
	}
	if !seen {
		t.Error("the patch has not reached the Deployment")
	}
	for _, d := range apicheck.Check(objs) {
		t.Error(d)
	}
}

// TestOverlayOfLinks: the topology has the digests of the links that an overlay has changed,
// so that their Pods do not count as late.
func TestOverlayOfLinks(t *testing.T) {
	out := twoRouters().mustRender(t)
	objs, err := manifest.ApplyOverlay(out.Objects, overlay(t, map[string]string{
		"kustomization.yaml": "patches: [{path: p.yaml, target: {kind: ConfigMap, name: r1-links}}]\n",
		"p.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: r1-links}\ndata: {links.json: '{\"version\":\"changed\"}'}\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	links, digests := map[string]string{}, map[string]string{}
	for _, o := range objs {
		if cm, ok := o.Object.(*corev1.ConfigMap); ok {
			if text := cm.Data[contract.LinksFile]; text != "" {
				links[cm.Labels[contract.LabelPod]] = contract.LinksDigest([]byte(text))
			}
			if text := cm.Data[contract.TopologyFile]; text != "" {
				var topology contract.Topology
				if err := json.Unmarshal([]byte(text), &topology); err != nil {
					t.Fatal(err)
				}
				digests = topology.Pods
				if encoded := jsonOf(t, o); !strings.Contains(encoded, topology.Pods["r1"]) {
					t.Errorf("the encoded object lacks the new digest:\n%s", encoded)
				}
			}
		}
	}
	if len(links) < 2 || !maps.Equal(links, digests) {
		t.Errorf("links %v, digests %v", links, digests)
	}
}

// TestOverlayImplied: without resources, the base is meant, and nothing changes.
func TestOverlayImplied(t *testing.T) {
	out := sharedPod().mustRender(t)
	objs, err := manifest.ApplyOverlay(out.Objects, overlay(t, map[string]string{"kustomization.yml": "commonAnnotations: {a: b}\n"}))
	if err != nil {
		t.Fatal(err)
	}
	if len(objs) != len(out.Objects) {
		t.Errorf("%d objects", len(objs))
	}
}

func TestOverlayRefused(t *testing.T) {
	objects := sharedPod().mustRender(t).Objects
	link := overlay(t, map[string]string{"kustomization.yaml": ""})
	if err := os.Symlink("/etc/passwd", filepath.Join(link, "x")); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ dir, want string }{
		"nothing there":    {overlay(t, nil), "no kustomization.yaml"},
		"no folder":        {filepath.Join(t.TempDir(), "no"), "opening the overlay"},
		"fetched patch":    {overlay(t, map[string]string{"kustomization.yaml": "patches: [{path: 'http://127.0.0.1:1/p.yaml'}]\n"}), "does not fetch"},
		"fetched files":    {overlay(t, map[string]string{"kustomization.yaml": "configMapGenerator: [{name: x, files: ['k=http://127.0.0.1:1/f']}]\n"}), "does not fetch"},
		"fetched env":      {overlay(t, map[string]string{"kustomization.yaml": "secretGenerator: [{name: x, envs: ['http://127.0.0.1:1/f']}]\n"}), "does not fetch"},
		"fetched settings": {overlay(t, map[string]string{"kustomization.yaml": "configurations: ['http://127.0.0.1:1/c.yaml']\n"}), "does not fetch"},
		"fetched schema":   {overlay(t, map[string]string{"kustomization.yaml": "openapi: {path: 'http://127.0.0.1:1/s.json'}\n"}), "does not fetch"},
		"fetched plugin":   {overlay(t, map[string]string{"kustomization.yaml": "transformers: ['https://example.com/x']\n"}), "does not fetch"},
		"fetched below":    {overlay(t, map[string]string{"kustomization.yaml": "resources: [../base, sub]\n", "sub/kustomization.yaml": "resources: ['https://example.com/x']\n"}), "does not fetch"},
		"local file":       {overlay(t, map[string]string{"kustomization.yaml": "configMapGenerator: [{name: x, files: [/etc/hostname]}]\n"}), "does not fetch"},
		"fetched":          {overlay(t, map[string]string{"kustomization.yaml": "resources: [../base, 'https://example.com/x?ref=1']\n"}), "does not fetch"},
		"link":             {link, "not an ordinary file"},
		"renamed":          {overlay(t, map[string]string{"kustomization.yaml": "namePrefix: x-\n"}), "namePrefix"},
		"no base":          {overlay(t, map[string]string{"kustomization.yaml": "resources: [x.yaml]\n", "x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"}), `add "../base"`},
		"unknown field":    {overlay(t, map[string]string{"kustomization.yaml": "nonsense: 1\n"}), "nonsense"},
		"no YAML":          {overlay(t, map[string]string{"kustomization.yaml": "{"}), "reading"},
		"field of no type": {overlay(t, map[string]string{"kustomization.yaml": "patches: [{patch: '[{op: add, path: /spec/nonsense, value: 1}]', target: {kind: Deployment}}]\n"}), "nonsense"},
	}
	// Wherever a kustomization names something, kustomize would fetch it.
	for field, text := range map[string]string{
		"resources": "[%q]", "bases": "[%q]", "components": "[%q]", "generators": "[%q]", "transformers": "[%q]", "validators": "[%q]",
		"configurations": "[%q]", "crds": "[%q]", "patchesStrategicMerge": "[%q]",
		"patches": "[{path: %q}]", "patchesJson6902": "[{path: %q, target: {version: v1, kind: Service, name: x}}]", "replacements": "[{path: %q}]",
		"openapi": "{path: %q}", "configMapGenerator": "[{name: x, files: [%q]}]", "secretGenerator": "[{name: x, env: %q}]",
	} {
		for _, name := range []string{"https://example.com/x", "/x.yaml", "../../etc/hostname"} {
			tests[field+" "+name] = struct{ dir, want string }{
				overlay(t, map[string]string{"kustomization.yaml": field + ": " + fmt.Sprintf(text, name) + "\n", "x.yaml": "{}\n"}), "does not fetch resources",
			}
		}
	}
	huge := overlay(t, map[string]string{"kustomization.yaml": ""})
	if err := os.WriteFile(filepath.Join(huge, "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(huge, "x"), 65<<20); err != nil {
		t.Fatal(err)
	}
	tests["huge"] = struct{ dir, want string }{huge, "more than"}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.ApplyOverlay(objects, test.dir)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want %q in %v", test.want, err)
			}
		})
	}
}
