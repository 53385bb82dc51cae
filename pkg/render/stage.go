package render

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// resolvConf is where a node's own resolv.conf is in its folder.
const resolvConf = ".c9s/resolv.conf"

// tlsFolder is where issued certificates are among the chunks, by node ID.
const tlsFolder = "tls"

// stagedLarge is the amount of staged files of one Pod, in bytes, that is worth
// a warning: etcd keeps it all.
const stagedLarge = 64 << 20

// staged are the objects that carry a Pod's files and the volumes that bring
// them to prepare.
type staged struct {
	configMaps []*corev1.ConfigMap
	secrets    []*corev1.Secret
	// shared are ConfigMaps that other Pods may have too, named by their contents.
	shared []*corev1.ConfigMap
	// folders are the nodes, by ID, that have something in their folder.
	folders map[string]bool
	// plan is the name of the ConfigMap with the manifest.
	plan string
	// files are the sources of the projected volume with all chunks.
	files []corev1.VolumeProjection
	// digest is over the manifest, and through it over all files.
	digest string
	// programs says which containers have one.
	programs map[string]bool
	// empty reports whether there is nothing to write.
	empty bool
}

// stager collects the files and programs of one Pod.
type stager struct {
	index          *index
	pod            *podView
	public, secret *packer
	certificates   []corev1.VolumeProjection
	// total is the size of all files in bytes.
	total int64
	diags *diag.List
}

func newStager(x *index, pod *podView, diags *diag.List) *stager {
	keys := map[string]bool{tlsFolder: true, contract.ManifestFile: true}
	return &stager{index: x, pod: pod, public: newPacker(keys), secret: newPacker(keys), diags: diags}
}

func (s *stager) stage() staged {
	list := contract.Manifest{Version: contract.ManifestVersion, Lab: s.index.lab.Name, Pod: s.pod.name, Volumes: s.pod.claimFolders()}
	out := staged{programs: map[string]bool{}, folders: map[string]bool{}, empty: !s.pod.persistent && len(list.Volumes) == 0}
	for _, m := range s.pod.members {
		node := contract.ManifestNode{Name: m.node.Name, ID: m.node.ID, Kind: m.node.Kind, External: external(m.node)}
		for _, f := range m.plan.Files {
			node.Entries = append(node.Entries, s.entry(m, f))
		}
		if s.pod.ownResolvConf(m.node) {
			node.Entries = append(node.Entries, s.content(m, contract.Entry{Path: resolvConf, Mode: 0o644}, resolvConfText(m.node.DNS), false))
		}
		node.Entries = append(node.Entries, missingFolders(m.plan)...)
		node.Gate = s.gate(m.node)
		node.Login = s.login(m)
		out.empty = out.empty && node.Login == nil
		node.Containers = s.programs(m)
		for _, c := range node.Containers {
			out.programs[c.Name] = true
		}
		if len(node.Entries) > 0 || s.pod.persistent {
			out.folders[m.node.ID] = true
		}
		out.empty = out.empty && len(node.Entries) == 0 && len(node.Containers) == 0
		list.Nodes = append(list.Nodes, node)
	}
	if !s.index.opts.NoController && slices.ContainsFunc(s.pod.members, func(m member) bool { return len(m.plan.Containers) > 0 }) {
		list.BootPerWorker = s.index.lab.BootPerWorker // without a controller, nobody would grant a turn
	}
	if s.total > stagedLarge {
		s.diags.Warnf(CodeStagedSize, s.pod.primary.Pos, "put large files in the image or on a volume",
			"%d MiB for Pod %q are staged in ConfigMaps and Secrets, which etcd stores", s.total>>20, s.pod.name)
	}
	s.finish(&out, list)
	return out
}

// finish makes the objects once everything is packed. The manifest is packed last, since it
// lists the chunks of all others.
func (s *stager) finish(out *staged, list contract.Manifest) {
	text := manifest.PrettyJSON(list, 4)
	out.digest = contract.ShortDigest(text)
	files := len(s.public.bins) > 0
	home := s.public.whole(contract.ManifestFile, text)
	for _, bin := range s.public.bins {
		name := s.pod.name + "-files-" + bin.digest()
		if bin == home {
			out.plan = name
		}
		out.configMaps = append(out.configMaps, bin.configMap(s.index.nodeMeta(name, s.pod.name, s.pod.primary)))
		if files {
			out.files = append(out.files, configMapProjection(name))
		}
	}
	for _, bin := range s.public.shared {
		name := sharedFile + bin.digest()
		out.shared = append(out.shared, bin.configMap(s.index.labMeta(name, contract.ComponentFiles)))
		out.files = append(out.files, configMapProjection(name))
	}
	for _, bin := range s.secret.bins {
		name := s.pod.name + "-secret-" + bin.digest()
		out.secrets = append(out.secrets, &corev1.Secret{
			TypeMeta:   typeMeta("v1", "Secret"),
			ObjectMeta: s.index.nodeMeta(name, s.pod.name, s.pod.primary),
			Immutable:  new(true),
			Type:       corev1.SecretTypeOpaque,
			Data:       bin.bytes(),
		})
		out.files = append(out.files, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: name},
		}})
	}
	out.files = append(out.files, s.certificates...)
}

func (b *bin) configMap(meta metav1.ObjectMeta) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: typeMeta("v1", "ConfigMap"), ObjectMeta: meta, Immutable: new(true), Data: b.text, BinaryData: b.binary}
}

func configMapProjection(name string) corev1.VolumeProjection {
	return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

// entry stages one file, folder or link of a plan.
func (s *stager) entry(m member, f plan.File) contract.Entry {
	e := contract.Entry{Path: f.Path, Mode: contract.Mode(f.Mode), UID: f.UID, GID: f.GID, Dir: f.Dir, Link: f.Link, Seed: f.Seed}
	switch {
	case f.Dir || f.Link != "":
		return e
	case f.Certificate != "":
		e.Certificate = f.Certificate
		e.Secret = true
		e.Chunks = []string{s.certificate(m.node, f.Certificate)}
		return e
	case f.Ref != nil:
		return s.content(m, e, s.bytes(m.node, f.Ref, f.Path), f.Secret || f.Ref.Secret || keptSecret(m, f.Path))
	}
	return s.content(m, e, f.Content, f.Secret || keptSecret(m, f.Path))
}

// content packs data and completes e.
func (s *stager) content(m member, e contract.Entry, data []byte, secret bool) contract.Entry {
	sum := sha256.Sum256(data)
	e.Digest = "sha256:" + hex.EncodeToString(sum[:])
	e.Size = int64(len(data))
	e.Secret = secret
	s.total += e.Size
	name := e.Path
	if len(s.pod.members) > 1 {
		name = m.node.ID + "/" + name
	}
	if secret {
		e.Chunks = s.secret.put(name, data, sum, true)
	} else {
		e.Chunks = s.public.put(name, data, sum, false)
	}
	return e
}

// bytes are what a reference points at.
func (s *stager) bytes(n *lab.Node, ref *lab.FileRef, name string) []byte {
	data, ok := s.index.lab.Files[ref.Digest]
	if !ok && ref.Size > 0 {
		s.diags.Errorf(CodeFileMissing, n.Pos, "report this to c9s", "node %q: the contents of %q (%s) are not in the lab", n.Name, name, ref.Digest)
	}
	return data
}

// certificate makes a part of the node's certificate reach prepare, once it has
// been issued, and returns where.
func (s *stager) certificate(n *lab.Node, key string) string {
	chunk := path.Join(tlsFolder, n.ID, key)
	if slices.ContainsFunc(s.certificates, func(have corev1.VolumeProjection) bool { return have.Secret.Items[0].Path == chunk }) {
		return chunk
	}
	s.certificates = append(s.certificates, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: contract.CertificateSecret(n.ID)},
		Items:                []corev1.KeyToPath{{Key: key, Path: chunk}},
		Optional:             new(true),
	}})
	return chunk
}

// missingFolders are the mounted folders that no file of the plan makes. Left
// alone, the kubelet would make them with mode 0750.
func missingFolders(p *plan.Plan) []contract.Entry {
	have := map[string]bool{".": true, "": true}
	for _, f := range p.Files {
		for dir := f.Path; !have[dir]; dir = path.Dir(dir) {
			have[dir] = true
		}
	}
	var out []contract.Entry
	for _, c := range p.Containers {
		for _, m := range c.Mounts {
			if !have[m.Path] {
				have[m.Path] = true
				out = append(out, contract.Entry{Path: m.Path, Mode: 0o755, Dir: true})
			}
		}
	}
	return out
}

// ownResolvConf reports whether the node gets a resolv.conf of its own. The Pod's
// must stay the cluster's, since the sidecar finds its peers by it.
func (v *podView) ownResolvConf(n *lab.Node) bool {
	return n.DNS != nil && len(n.DNS.Servers) > 0 && !v.hostNetwork && !n.RootNamespace
}

func resolvConfText(dns *lab.DNS) []byte {
	var b []byte
	for _, server := range dns.Servers {
		b = append(b, "nameserver "+server+"\n"...)
	}
	b = appendWords(b, "search", dns.Search)
	return appendWords(b, "options", dns.Options)
}

func appendWords(b []byte, keyword string, words []string) []byte {
	if len(words) == 0 {
		return b
	}
	b = append(b, keyword...)
	for _, w := range words {
		b = append(append(b, ' '), w...)
	}
	return append(b, '\n')
}

func payloadPath(i int) string { return "payload/" + strconv.Itoa(i) }
