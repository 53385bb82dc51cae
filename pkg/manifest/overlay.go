package manifest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// Where the rendered folder and the user's overlay are while kustomize runs. An
// overlay names the folder as "../base".
const (
	basePath    = "/base"
	overlayPath = "/overlay"
	baseRef     = "../base"
)

// kustomizationNames are the names that kustomize looks for.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// ApplyOverlay applies the kustomize overlay in overlayDir to the rendered folder of
// objects, in memory, and returns the resulting objects. The overlay's kustomization
// takes the folder as the resource "../base"; where it names no resources, that is
// assumed. Nothing is fetched and nothing is written.
func ApplyOverlay(objects []Object, overlayDir string) ([]Object, error) {
	files, err := Folder(objects)
	if err != nil {
		return nil, err
	}
	memory := filesys.MakeFsInMemory()
	if err := writeBase(memory, files); err != nil {
		return nil, err
	}
	if err := copyOverlay(memory, overlayDir); err != nil {
		return nil, err
	}
	if err := fetchesNothing(memory, overlayDir); err != nil {
		return nil, err
	}
	direct, err := includeBase(memory, overlayDir)
	if err != nil {
		return nil, err
	}
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, overlayPath)
	if err != nil {
		return nil, fmt.Errorf("applying the overlay %s: %w", overlayDir, err)
	}
	objs, err := decodeResult(result, origins(objects))
	if err != nil {
		return nil, fmt.Errorf("applying the overlay %s: %w", overlayDir, err)
	}
	if err := sameNames(objs); err != nil && !direct {
		return nil, fmt.Errorf("the overlay %s names resources but not the rendered lab; add %q to its resources", overlayDir, baseRef)
	} else if err != nil {
		return nil, fmt.Errorf("applying the overlay %s: %w", overlayDir, err)
	}
	return objs, nil
}

// writeBase copies the folder; unlike on disk, its kustomization lists the
// secrets, so that what the overlay does to all objects is done to them too. The
// secrets' copy of the namespace would then be there twice.
func writeBase(memory filesys.FileSystem, files map[string][]byte) error {
	for name, data := range files {
		if name == kustomizationFile {
			if _, secrets := files[path.Join(secretsFolder, kustomizationFile)]; secrets {
				data = append(slices.Clone(data), "- "+secretsFolder+"\n"...)
			}
		}
		if name == path.Join(secretsFolder, kustomizationFile) {
			data = bytes.Replace(data, []byte("- "+GroupNamespace+"\n"), nil, 1)
		}
		if err := memory.WriteFile(path.Join(basePath, name), data); err != nil {
			return err
		}
	}
	return nil
}

// maxOverlay is the most that an overlay may hold, in bytes.
const maxOverlay = 64 << 20

// copyOverlay reads the overlay's files. Symbolic links are rejected: they would
// let an overlay from elsewhere take in any file of the user's.
func copyOverlay(memory filesys.FileSystem, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening the overlay: %w", err)
	}
	defer root.Close()
	var size int64
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("reading the overlay %s: %w", dir, err)
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("reading the overlay %s: %s is not an ordinary file", dir, name)
		}
		info, err := entry.Info()
		if err != nil {
			return fmt.Errorf("reading the overlay %s: %w", dir, err)
		}
		if size += info.Size(); size > maxOverlay {
			return fmt.Errorf("reading the overlay %s: it has more than %d bytes", dir, maxOverlay)
		}
		data, err := root.ReadFile(name)
		if err != nil {
			return fmt.Errorf("reading the overlay %s: %w", dir, err)
		}
		return memory.WriteFile(path.Join(overlayPath, name), data)
	})
}

// fetchesNothing returns an error if a kustomization of the overlay names what is not in
// it: kustomize would take that for the URL of a file or a Git repository, and fetch it.
func fetchesNothing(memory filesys.FileSystem, dir string) error {
	if !memory.Exists(overlayPath) {
		return nil // an empty folder
	}
	return memory.Walk(overlayPath, func(file string, info fs.FileInfo, err error) error {
		if err != nil || info.IsDir() || !slices.Contains(kustomizationNames, path.Base(file)) {
			return err
		}
		data, err := memory.ReadFile(file)
		if err != nil {
			return err
		}
		shown := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(file, overlayPath), "/")))
		var content map[string]any
		if err := yaml.Unmarshal(data, &content); err != nil {
			return fmt.Errorf("reading %s: %w", shown, err)
		}
		for _, name := range named(content) {
			if strings.Contains(name, "\n") { // written in place
				continue
			}
			if path.IsAbs(name) || !memory.Exists(path.Join(path.Dir(file), name)) {
				return fmt.Errorf("%s names %q, which is not in the overlay; c9s does not fetch resources, and the rendered lab is %q", shown, name, baseRef)
			}
		}
		return nil
	})
}

// named are the files and folders that a kustomization names.
func named(content map[string]any) []string {
	var out []string
	for _, field := range []string{"resources", "bases", "components", "generators", "transformers", "validators", "configurations", "crds", "patchesStrategicMerge"} {
		out = append(out, texts(content[field])...)
	}
	single := func(v any, fields ...string) {
		m, _ := v.(map[string]any)
		for _, field := range fields {
			if text, ok := m[field].(string); ok && text != "" {
				out = append(out, text)
			}
		}
	}
	for _, field := range []string{"patches", "patchesJson6902", "replacements"} {
		items, _ := content[field].([]any)
		for _, item := range items {
			single(item, "path")
		}
	}
	single(content["openapi"], "path")
	for _, field := range []string{"configMapGenerator", "secretGenerator"} {
		items, _ := content[field].([]any)
		for _, item := range items {
			single(item, "env")
			m, _ := item.(map[string]any)
			out = append(out, texts(m["envs"])...)
			for _, file := range texts(m["files"]) {
				if _, after, ok := strings.Cut(file, "="); ok {
					file = after
				}
				out = append(out, file)
			}
		}
	}
	return out
}

// includeBase makes the overlay's kustomization take the base where it names no
// resources at all. direct reports whether the base is a resource of the overlay itself.
func includeBase(memory filesys.FileSystem, dir string) (direct bool, err error) {
	name := overlayKustomization(memory)
	if name == "" {
		return false, fmt.Errorf("the overlay %s has no kustomization.yaml", dir)
	}
	file := path.Join(overlayPath, name)
	data, err := memory.ReadFile(file)
	if err != nil {
		return false, err
	}
	var content map[string]any
	if err := yaml.Unmarshal(data, &content); err != nil {
		return false, fmt.Errorf("reading %s: %w", filepath.Join(dir, name), err)
	}
	resources := slices.Concat(texts(content["resources"]), texts(content["bases"]))
	for _, resource := range slices.Concat(resources, texts(content["components"])) {
		direct = direct || path.Join(overlayPath, resource) == basePath
	}
	if len(resources) > 0 {
		return direct, nil
	}
	if content == nil {
		content = map[string]any{}
	}
	content["resources"] = []string{baseRef}
	data, err = yaml.Marshal(content)
	if err != nil {
		return false, err
	}
	return true, memory.WriteFile(file, data)
}

// texts are the texts of a list in YAML.
func texts(list any) []string {
	var out []string
	items, _ := list.([]any)
	for _, item := range items {
		if text, ok := item.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

func overlayKustomization(memory filesys.FileSystem) string {
	for _, name := range kustomizationNames {
		if memory.Exists(path.Join(overlayPath, name)) {
			return name
		}
	}
	return ""
}

// scheme holds the types that c9s itself renders; others stay unstructured.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, networkingv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // a conflict between API packages
		}
	}
	return s
}()

// origins maps kind and name to the rendered object.
func origins(objects []Object) map[string]Object {
	out := make(map[string]Object, len(objects))
	for _, o := range objects {
		if meta, ok := o.Object.(metav1.Object); ok {
			out[o.Kind()+"/"+meta.GetName()] = o
		}
	}
	return out
}

func decodeResult(result resmap.ResMap, origins map[string]Object) ([]Object, error) {
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Strict: true})
	var out []Object
	for _, resource := range result.Resources() {
		data, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", resource.CurId(), err)
		}
		gvk := schema.FromAPIVersionAndKind(resource.GetApiVersion(), resource.GetKind())
		var obj runtime.Object
		if scheme.Recognizes(gvk) {
			obj, _, err = decoder.Decode(data, &gvk, nil)
		} else {
			u := &unstructured.Unstructured{}
			err = u.UnmarshalJSON(data)
			obj = u
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", resource.GetKind(), resource.GetName(), err)
		}
		o := Object{Object: obj, Secret: IsSecret(obj)}
		rendered := resource.OrgId() // before the overlay renamed it
		if origin, known := origins[rendered.Kind+"/"+rendered.Name]; known {
			o.Source, o.Pos, o.Node, o.Comments = origin.Source, origin.Pos, origin.Node, origin.Comments
		} else {
			o.Source = resource.GetAnnotations()[contract.AnnotationSource]
			o.Pos = diag.Pos{File: o.Source}
		}
		o.Group = groupOf(resource.GetKind(), resource.GetName(), resource.GetLabels())
		if err := o.Encode(); err != nil {
			return nil, fmt.Errorf("%s %s: %w", resource.GetKind(), resource.GetName(), err)
		}
		out = append(out, o)
	}
	slices.SortStableFunc(out, func(a, b Object) int { return applyOrder(a) - applyOrder(b) })
	return out, renewDigests(out, origins)
}

// renewDigests updates the digests in the topology of the links that an overlay has changed.
func renewDigests(objects []Object, origins map[string]Object) error {
	for i := range objects {
		topology, ok := objects[i].Object.(*corev1.ConfigMap)
		if !ok || topology.Data[contract.TopologyFile] == "" {
			continue
		}
		text := topology.Data[contract.TopologyFile]
		for _, o := range objects {
			links, ok := o.Object.(*corev1.ConfigMap)
			if !ok || links.Data[contract.LinksFile] == "" {
				continue
			}
			origin, ok := origins["ConfigMap/"+links.Name].Object.(*corev1.ConfigMap)
			if ok && origin.Data[contract.LinksFile] != links.Data[contract.LinksFile] {
				text = contract.RenewLinksDigest(text, links.Labels[contract.LabelPod], origin.Data[contract.LinksFile], links.Data[contract.LinksFile])
			}
		}
		if text == topology.Data[contract.TopologyFile] {
			continue
		}
		topology.Data[contract.TopologyFile] = text
		if err := objects[i].Encode(); err != nil {
			return fmt.Errorf("ConfigMap %s: %w", topology.Name, err)
		}
	}
	return nil
}

// groupOf finds the file of an object that has been through kustomize.
func groupOf(kind, name string, labels map[string]string) string {
	pod := labels[contract.LabelPod]
	switch {
	case kind == "Namespace":
		return GroupNamespace
	case kind == "Secret" && (name == contract.WireKeySecret || name == contract.CASecret):
		return GroupLabSecrets
	case kind == "Secret" && pod != "":
		return secretsFolder + "/" + NodeGroup(pod)
	case kind == "Secret":
		return secretsFolder + "/overlay.yaml"
	case pod != "":
		return NodeGroup(pod)
	case labels[contract.LabelComponent] == contract.ComponentController:
		return GroupController
	case labels[contract.LabelComponent] == contract.ComponentFiles:
		return FileGroup(name)
	case labels[contract.LabelComponent] == contract.ComponentLab:
		return GroupLab
	}
	return groupOverlay
}

// applyOrder puts what others need first: the namespace, what the overlay adds
// and the lab has, then Pod by Pod.
func applyOrder(o Object) int {
	switch {
	case o.Group == GroupNamespace:
		return 0
	case o.Group == groupOverlay:
		return 1
	case o.Group == GroupLab:
		return 2
	case strings.HasPrefix(o.Group, secretsFolder+"/"):
		return 3
	case o.Group == GroupController:
		return 4
	}
	return 5
}

// sameNames rejects an overlay that renames or removes the Service through which the Pods
// of the lab find each other.
func sameNames(objs []Object) error {
	for _, o := range objs {
		if s, ok := o.Object.(*corev1.Service); ok && s.Name == contract.LabService {
			return nil
		}
	}
	return fmt.Errorf("the overlay renames or removes the Service %s; the Pods of the lab find each other by its name, so remove namePrefix and nameSuffix", contract.LabService)
}
