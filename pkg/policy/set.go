package policy

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// Set is what a profile sets. A field that is omitted is left to later profiles.
type Set struct {
	// Expose is the node's Service.
	Expose *Expose `json:"expose,omitempty"`
	// Resources of each of the node's containers.
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// NodeSelector, Affinity and Tolerations say where the Pod may run, in addition to what c9s
	// requires.
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Affinity     *corev1.Affinity    `json:"affinity,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
	// Persistence keeps what the device saves in a PersistentVolumeClaim.
	Persistence *Persistence `json:"persistence,omitempty"`
	// ImagePullPolicy is Always, IfNotPresent or Never.
	ImagePullPolicy string `json:"imagePullPolicy,omitempty"`
	// ImagePullSecrets are Secrets of the namespace with the logins of registries.
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`
	// Probes take the place of those that the kind and the topology give.
	Probes *Probes `json:"probes,omitempty"`
	// Privileged overrides what the kind needs and the topology says.
	Privileged *bool `json:"privileged,omitempty"`
	// KVM is required (default) or optional: whether a virtual machine runs only on workers
	// with /dev/kvm.
	KVM string `json:"kvm,omitempty"`
	// SecretFiles are glob patterns of mount targets to keep in Secrets.
	SecretFiles []string `json:"secretFiles,omitempty"`
	// Files are files that a Secret or ConfigMap of the namespace holds. They add up over the
	// profiles; for one path, the first profile counts.
	Files []ClusterFile `json:"files,omitempty"`
	// StrictExec makes an exec command that fails fail the node.
	StrictExec *bool `json:"strictExec,omitempty"`
	// External says what the node reaches outside the lab, by prefix.
	External []ExternalRule `json:"external,omitempty"`

	external []lab.ExternalRule
}

// Expose is the node's Service.
type Expose struct {
	// Type is ClusterIP (default), LoadBalancer, NodePort, Headless or None.
	Type string `json:"type,omitempty"`
	// Ports are 22, "161/udp"; they replace the default list. An empty list means none but
	// those of the topology.
	Ports []intstr.IntOrString `json:"ports,omitempty"`
	// UseMgmtAddress asks a load balancer for the management address.
	UseMgmtAddress bool `json:"useMgmtAddress,omitempty"`
	// Shared puts all such nodes behind one load balancer, each with a range of its ports.
	Shared bool `json:"shared,omitempty"`
}

// Persistence is a PersistentVolumeClaim.
type Persistence struct {
	// Enabled makes the claim.
	Enabled bool `json:"enabled"`
	// Size is a quantity such as 5Gi.
	Size string `json:"size,omitempty"`
	// StorageClass is the class of the claim (default: that of the cluster).
	StorageClass string `json:"storageClass,omitempty"`
}

// Probes are Kubernetes probes of the device's container.
type Probes struct {
	// Readiness, Liveness and Startup are probes as Kubernetes has them.
	Readiness *corev1.Probe `json:"readiness,omitempty"`
	Liveness  *corev1.Probe `json:"liveness,omitempty"`
	Startup   *corev1.Probe `json:"startup,omitempty"`
	// NoReadiness starts the node without a readiness probe: it is ready once it runs.
	NoReadiness bool `json:"noReadiness,omitempty"`
	// SSH makes the node ready when its SSH server accepts a login, and the test of the kind, if
	// there is one, succeeds.
	SSH *SSHProbe `json:"ssh,omitempty"`
}

// SSHProbe logs in to the management address of a node.
type SSHProbe struct {
	// Port is 22 by default.
	Port int `json:"port,omitempty"`
	// Username is that of the topology or the kind by default.
	Username string `json:"username,omitempty"`
	// Password is that of the topology or the kind by default.
	Password string `json:"password,omitempty"`
	// Secret is the name of a Secret of the namespace that has the password.
	Secret string `json:"secret,omitempty"`
	// Key is the key of the Secret that has the password ("password" by default).
	Key string `json:"key,omitempty"`

	pos diag.Pos
}

// check tests what is beyond the types of the fields.
func (p *Probes) check() error {
	if p == nil || p.SSH == nil {
		return nil
	}
	s := p.SSH
	switch {
	case p.Readiness != nil || p.NoReadiness:
		return errors.New("probes.ssh is a readiness probe: remove readiness and noReadiness, or ssh")
	case s.Port < 0 || s.Port > 65535:
		return fmt.Errorf("probes.ssh: port %d is not a number from 1 to 65535", s.Port)
	case s.Password != "" && s.Secret != "":
		return errors.New("probes.ssh has a password and a secret: remove one of them")
	case s.Key != "" && s.Secret == "":
		return errors.New("probes.ssh has a key without a secret")
	case s.Secret != "" && len(validation.IsDNS1123Subdomain(s.Secret)) > 0:
		return fmt.Errorf("probes.ssh: %q cannot be the name of a Secret", s.Secret)
	case s.Key != "" && len(validation.IsConfigMapKey(s.Key)) > 0:
		return fmt.Errorf("probes.ssh: %q cannot be a key of a Secret", s.Key)
	}
	return nil
}

// resolved is the probe in the lab's terms. What it does not set is the node's own.
func (s *SSHProbe) resolved() *lab.SSHProbe {
	if s == nil {
		return nil
	}
	out := &lab.SSHProbe{Port: cmp.Or(s.Port, 22), Username: s.Username, Password: s.Password, Secret: s.Secret, Pos: s.pos}
	if s.Secret != "" {
		out.Key = cmp.Or(s.Key, "password")
	}
	return out
}

// ClusterFile is a file or a folder that a Secret or ConfigMap of the lab's namespace holds.
type ClusterFile struct {
	// Path is where the node's containers have it.
	Path string `json:"path"`
	// Secret or ConfigMap is the name of the object.
	Secret    string `json:"secret,omitempty"`
	ConfigMap string `json:"configMap,omitempty"`
	// Key selects one file. Without it, Path is a folder with all keys.
	Key string `json:"key,omitempty"`
	// Mode is read (default) or execute.
	Mode string `json:"mode,omitempty"`

	pos diag.Pos
}

// The values of a file's mode.
const (
	modeRead    = "read"
	modeExecute = "execute"
)

// check tests what is beyond the types of the fields.
func (f *ClusterFile) check() error {
	object := cmp.Or(f.Secret, f.ConfigMap)
	switch {
	case !path.IsAbs(f.Path) || path.Clean(f.Path) == "/":
		return fmt.Errorf("path %q is not an absolute path in the node", f.Path)
	case (f.Secret == "") == (f.ConfigMap == ""):
		return fmt.Errorf("the file %s needs either secret or configMap", f.Path)
	case len(validation.IsDNS1123Subdomain(object)) > 0:
		return fmt.Errorf("the file %s: %q cannot be the name of a Secret or ConfigMap", f.Path, object)
	case f.Key != "" && len(validation.IsConfigMapKey(f.Key)) > 0:
		return fmt.Errorf("the file %s: %q cannot be a key of a Secret or ConfigMap", f.Path, f.Key)
	case !slices.Contains([]string{"", modeRead, modeExecute}, f.Mode):
		return fmt.Errorf("the file %s: mode %q is not %s or %s", f.Path, f.Mode, modeRead, modeExecute)
	}
	return nil
}

// resolved is the file in the lab's terms.
func (f *ClusterFile) resolved() lab.ClusterFile {
	out := lab.ClusterFile{Path: path.Clean(f.Path), Secret: f.Secret, ConfigMap: f.ConfigMap, Key: f.Key, Mode: 0o444, Pos: f.pos}
	if f.Mode == modeExecute {
		out.Mode = 0o555
	}
	return out
}

// fill sets the fields of p that are not set yet.
func (s *Set) fill(p *lab.Policy) {
	if p.Expose == nil && s.Expose != nil {
		p.Expose = s.Expose.resolved()
	}
	if p.Resources == nil {
		p.Resources = s.Resources
	}
	if p.NodeSelector == nil {
		p.NodeSelector = s.NodeSelector
	}
	if p.Affinity == nil {
		p.Affinity = s.Affinity
	}
	if p.Tolerations == nil {
		p.Tolerations = s.Tolerations
	}
	if p.Persistence == nil && s.Persistence != nil {
		p.Persistence = &lab.Persistence{Enabled: s.Persistence.Enabled, Size: s.Persistence.Size, StorageClass: s.Persistence.StorageClass}
	}
	if p.ImagePullPolicy == "" {
		p.ImagePullPolicy = s.ImagePullPolicy
	}
	if p.ImagePullSecrets == nil {
		p.ImagePullSecrets = s.ImagePullSecrets
	}
	if s.Probes != nil {
		if p.Readiness == nil && !p.NoReadiness && p.SSH == nil {
			p.Readiness, p.NoReadiness, p.SSH = s.Probes.Readiness, s.Probes.NoReadiness, s.Probes.SSH.resolved()
		}
		if p.Liveness == nil {
			p.Liveness = s.Probes.Liveness
		}
		if p.Startup == nil {
			p.Startup = s.Probes.Startup
		}
	}
	if p.Privileged == nil {
		p.Privileged = s.Privileged
	}
	if p.KVM == "" {
		p.KVM = s.KVM
	}
	if p.SecretFiles == nil {
		p.SecretFiles = s.SecretFiles
	}
	for i := range s.Files {
		f := s.Files[i].resolved()
		if !slices.ContainsFunc(p.Files, func(have lab.ClusterFile) bool { return have.Path == f.Path }) {
			p.Files = append(p.Files, f)
		}
	}
	if p.StrictExec == nil {
		p.StrictExec = s.StrictExec
	}
	if p.External == nil {
		p.External = s.external
	}
}
