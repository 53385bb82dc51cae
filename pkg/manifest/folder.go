package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/internal/inorder"
)

// The files of a rendered folder.
const (
	GroupNamespace  = "namespace.yaml"
	GroupLab        = "lab.yaml"
	GroupController = "controller.yaml"
	GroupLabSecrets = secretsFolder + "/lab.yaml"
	groupOverlay    = "overlay.yaml"
)

// NodeGroup returns the file of a Pod's objects.
func NodeGroup(pod string) string { return nodesFolder + "/" + pod + ".yaml" }

// SecretGroup returns the file of a Pod's Secrets.
func SecretGroup(pod string) string { return secretsFolder + "/" + NodeGroup(pod) }

// FileGroup returns the file of a ConfigMap with a large file.
func FileGroup(name string) string { return filesFolder + "/" + name + ".yaml" }

const (
	// fileHeader starts every file of a rendered folder.
	fileHeader        = "# Rendered by c9s. Do not edit: the next render replaces this file.\n"
	kustomizationFile = "kustomization.yaml"
	nodesFolder       = "nodes"
	filesFolder       = "files"
	secretsFolder     = "secrets"
)

// Folder returns the files of a rendered folder, by slash-separated path: one file
// per object group, a kustomization, and the secrets with a kustomization of their
// own in a folder that Git ignores.
func Folder(objects []Object) (map[string][]byte, error) {
	groups := map[string][]Object{}
	for _, o := range objects {
		groups[o.Group] = append(groups[o.Group], o)
	}
	names := slices.Sorted(maps.Keys(groups))
	files := make(map[string][]byte, len(names)+4)
	err := inorder.Do(len(names), func(i int) ([]byte, error) {
		var b bytes.Buffer
		b.WriteString(fileHeader)
		err := writeYAML(&b, groups[names[i]], (*Object).node)
		return b.Bytes(), err
	}, func(data []byte) error {
		files[names[len(files)]] = data
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the folder: %w", err)
	}
	var resources, secrets []string
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, secretsFolder+"/"); ok {
			secrets = append(secrets, rest)
		} else {
			resources = append(resources, name)
		}
	}
	slices.SortStableFunc(resources, func(a, b string) int { return cmp.Compare(fileOrder(a), fileOrder(b)) })
	files[kustomizationFile] = kustomization(resources, len(secrets) > 0)
	if len(secrets) > 0 {
		if ns, ok := files[GroupNamespace]; ok { // the secrets are applied first
			files[path.Join(secretsFolder, GroupNamespace)] = ns
			secrets = slices.Insert(secrets, 0, GroupNamespace)
		}
		files[path.Join(secretsFolder, kustomizationFile)] = kustomization(secrets, false)
		files[path.Join(secretsFolder, ".gitignore")] = []byte(fileHeader + "*\n")
	}
	return files, nil
}

// fileOrder puts the namespace before what is in it: not every tool sorts.
func fileOrder(name string) int {
	if i := slices.Index([]string{GroupNamespace, GroupLab, GroupController}, name); i >= 0 {
		return i
	}
	return 3
}

// kustomization lists resources, so that "kubectl apply -k" takes the folder.
func kustomization(resources []string, secrets bool) []byte {
	var b bytes.Buffer
	b.WriteString(fileHeader)
	if secrets {
		b.WriteString("# secrets/ is not listed: it must not be committed, and may be missing\n" +
			"# here. Apply it first: kubectl apply -k secrets\n")
	}
	b.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n")
	if len(resources) == 0 {
		b.WriteString("resources: []\n")
		return b.Bytes()
	}
	b.WriteString("resources:\n")
	for _, name := range resources {
		b.WriteString("- " + name + "\n")
	}
	return b.Bytes()
}
