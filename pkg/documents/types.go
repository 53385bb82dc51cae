package documents

import (
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
)

// raw is a value that is kept as it is.
type raw struct{ node *yaml.Node }

func (v *raw) DecodeYAML(_ *strictyaml.Decoder, n *yaml.Node, _ string) { v.node = n }

// value is a value with its place. node is nil where the document does not have it, or not
// as the type.
type value[T any] struct {
	V    T
	node *yaml.Node
}

func (v *value[T]) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	before, _ := d.Diags.Count()
	d.Decode(n, &v.V, path)
	if after, _ := d.Diags.Count(); after == before {
		v.node = n
	}
}

func (v value[T]) isSet() bool { return v.node != nil }

type meta struct {
	Name        value[string] `yaml:"name"`
	Namespace   value[string] `yaml:"namespace"`
	Labels      raw           `yaml:"labels"`
	Annotations raw           `yaml:"annotations"`
	Owners      []ownerRef    `yaml:"ownerReferences"`

	CreationTimestamp          raw `yaml:"creationTimestamp"`
	DeletionGracePeriodSeconds raw `yaml:"deletionGracePeriodSeconds"`
	DeletionTimestamp          raw `yaml:"deletionTimestamp"`
	Finalizers                 raw `yaml:"finalizers"`
	GenerateName               raw `yaml:"generateName"`
	Generation                 raw `yaml:"generation"`
	ManagedFields              raw `yaml:"managedFields"`
	ResourceVersion            raw `yaml:"resourceVersion"`
	SelfLink                   raw `yaml:"selfLink"`
	UID                        raw `yaml:"uid"`
}

type ownerRef struct {
	APIVersion         value[string] `yaml:"apiVersion"`
	Kind               value[string] `yaml:"kind"`
	Name               value[string] `yaml:"name"`
	UID                raw           `yaml:"uid"`
	Controller         raw           `yaml:"controller"`
	BlockOwnerDeletion raw           `yaml:"blockOwnerDeletion"`
}

// object is the outside of every document of clabernetes.
type object struct {
	APIVersion value[string] `yaml:"apiVersion"`
	Kind       value[string] `yaml:"kind"`
	Metadata   meta          `yaml:"metadata"`
	Spec       raw           `yaml:"spec"`
	Status     raw           `yaml:"status"`

	node *yaml.Node
}

// data is a ConfigMap or a Secret.
type data struct {
	APIVersion value[string] `yaml:"apiVersion"`
	Kind       value[string] `yaml:"kind"`
	Metadata   meta          `yaml:"metadata"`
	Data       raw           `yaml:"data"`
	BinaryData raw           `yaml:"binaryData"`
	StringData raw           `yaml:"stringData"`
	Type       raw           `yaml:"type"`
	Immutable  raw           `yaml:"immutable"`

	node *yaml.Node
}

type topologySpec struct {
	Definition struct {
		Containerlab value[string] `yaml:"containerlab"`
		KNE          raw           `yaml:"kne"`
	} `yaml:"definition"`
	Expose       exposeSpec     `yaml:"expose"`
	Deployment   deploymentSpec `yaml:"deployment"`
	StatusProbes *probesSpec    `yaml:"statusProbes"`
	ImagePull    imagePullSpec  `yaml:"imagePull"`
	Rollout      rolloutSpec    `yaml:"rollout"`
	Naming       raw            `yaml:"naming"`
	Connectivity raw            `yaml:"connectivity"`
}

// deploymentSpec is that of a Topology. Its maps are by node, in the document's order.
type deploymentSpec struct {
	Resources          raw             `yaml:"resources"`
	Scheduling         *schedulingSpec `yaml:"scheduling"`
	FilesFromConfigMap raw             `yaml:"filesFromConfigMap"`
	FilesFromSecret    raw             `yaml:"filesFromSecret"`
	FilesFromURL       raw             `yaml:"filesFromURL"`
	Persistence        *persistSpec    `yaml:"persistence"`
	Rollout            rolloutSpec     `yaml:"rollout"`
	launcherSpec       `yaml:",inline"`
}

// rolloutSpec is how many Pods are created, and boot, at a time.
type rolloutSpec struct {
	BatchSize            raw        `yaml:"batchSize"`
	MaxConcurrentPerHost value[int] `yaml:"maxConcurrentPerHost"`
}

// launcherSpec is what 0.8 has for the launcher.
type launcherSpec struct {
	PrivilegedLauncher      raw `yaml:"privilegedLauncher"`
	ContainerlabDebug       raw `yaml:"containerlabDebug"`
	ContainerlabTimeout     raw `yaml:"containerlabTimeout"`
	ContainerlabVersion     raw `yaml:"containerlabVersion"`
	LauncherImage           raw `yaml:"launcherImage"`
	LauncherImagePullPolicy raw `yaml:"launcherImagePullPolicy"`
	LauncherLogLevel        raw `yaml:"launcherLogLevel"`
	ExtraEnv                raw `yaml:"extraEnv"`
}

type exposeSpec struct {
	DisableExpose     value[bool]   `yaml:"disableExpose"`
	DisableAutoExpose value[bool]   `yaml:"disableAutoExpose"`
	ExposeType        value[string] `yaml:"exposeType"`
	UseIPv4           value[bool]   `yaml:"useNodeMgmtIpv4Address"`
	UseIPv6           value[bool]   `yaml:"useNodeMgmtIpv6Address"`
}

type schedulingSpec struct {
	NodeSelector raw `yaml:"nodeSelector"`
	Tolerations  raw `yaml:"tolerations"`
	Affinity     raw `yaml:"affinity"`
}

type persistSpec struct {
	Enabled          value[bool]   `yaml:"enabled"`
	ClaimSize        value[string] `yaml:"claimSize"`
	StorageClassName value[string] `yaml:"storageClassName"`
}

type probesSpec struct {
	Enabled                 value[bool]     `yaml:"enabled"`
	ExcludedNodes           []value[string] `yaml:"excludedNodes"`
	NodeProbeConfigurations raw             `yaml:"nodeProbeConfigurations"`
	ProbeConfiguration      probeSpec       `yaml:"probeConfiguration"`
}

type probeSpec struct {
	StartupSeconds value[int] `yaml:"startupSeconds"`
	SSH            *struct {
		Username value[string] `yaml:"username"`
		Password value[string] `yaml:"password"`
		Port     value[int]    `yaml:"port"`
	} `yaml:"sshProbeConfiguration"`
	TCP *struct {
		Port value[int] `yaml:"port"`
	} `yaml:"tcpProbeConfiguration"`
}

type imagePullSpec struct {
	Policy      value[string]   `yaml:"policy"`
	PullSecrets []value[string] `yaml:"pullSecrets"`
	nestedPull  `yaml:",inline"`
}

// nestedPull is how the launcher of 0.8 pulls images.
type nestedPull struct {
	InsecureRegistries  raw `yaml:"insecureRegistries"`
	PullThroughOverride raw `yaml:"pullThroughOverride"`
	DockerDaemonConfig  raw `yaml:"dockerDaemonConfig"`
	DockerConfig        raw `yaml:"dockerConfig"`
	CRISockOverride     raw `yaml:"criSockOverride"`
	CRIKindOverride     raw `yaml:"criKindOverride"`
	CRIHostsDir         raw `yaml:"criHostsDir"`
}

// profileSpec is that of a NodeProfile or LauncherProfile.
type profileSpec struct {
	Expose     *exposeSpec     `yaml:"expose"`
	ImagePull  *imagePullSpec  `yaml:"imagePull"`
	Resources  raw             `yaml:"resources"`
	Scheduling *schedulingSpec `yaml:"scheduling"`
	Deployment *struct {
		Persistence  *persistSpec `yaml:"persistence"`
		launcherSpec `yaml:",inline"`
	} `yaml:"deployment"`
	StatusProbes *probesSpec `yaml:"statusProbes"`
	Mgmt         *mgmtSpec   `yaml:"mgmt"`
}

type mgmtSpec struct {
	IPv4Subnet     raw `yaml:"ipv4-subnet"`
	IPv4Gw         raw `yaml:"ipv4-gw"`
	IPv4Range      raw `yaml:"ipv4-range"`
	IPv6Subnet     raw `yaml:"ipv6-subnet"`
	IPv6Gw         raw `yaml:"ipv6-gw"`
	IPv6Range      raw `yaml:"ipv6-range"`
	Network        raw `yaml:"network"`
	MTU            raw `yaml:"mtu"`
	ExternalAccess raw `yaml:"external-access"`
}

// nodeSpec is what a Node has beside the keys of a topology's node.
type nodeSpec struct {
	ProfileRef         *refSpec      `yaml:"profileRef"`
	LauncherProfileRef *refSpec      `yaml:"launcherProfileRef"`
	FilesFromConfigMap []fileSpec    `yaml:"filesFromConfigMap"`
	FilesFromSecret    []fileSpec    `yaml:"filesFromSecret"`
	FilesFromURL       []fileSpec    `yaml:"filesFromURL"`
	AppProtocols       []appProtocol `yaml:"appProtocols"`
	// keys are those of the topology.
	keys []strictyaml.Entry
}

func (s *nodeSpec) CollectKey(_ *strictyaml.Decoder, e strictyaml.Entry, _ string) {
	s.keys = append(s.keys, e)
}

type refSpec struct {
	Name value[string] `yaml:"name"`
}

type appProtocol struct {
	Port        value[string] `yaml:"port"`
	AppProtocol value[string] `yaml:"appProtocol"`
}

// fileSpec is an entry of filesFromConfigMap, filesFromSecret or filesFromURL.
type fileSpec struct {
	FilePath      value[string] `yaml:"filePath"`
	ConfigMapName value[string] `yaml:"configMapName"`
	ConfigMapPath value[string] `yaml:"configMapPath"`
	SecretName    value[string] `yaml:"secretName"`
	SecretPath    value[string] `yaml:"secretPath"`
	URL           value[string] `yaml:"url"`
	Digest        value[string] `yaml:"digest"`
	Mode          value[string] `yaml:"mode"`

	node *yaml.Node
}

// fileKeys are the keys of each list of files.
var fileKeys = map[string][]string{
	"filesFromConfigMap": {"filePath", "configMapName", "configMapPath", "mode"},
	"filesFromSecret":    {"filePath", "secretName", "secretPath", "mode"},
	"filesFromURL":       {"filePath", "url", "digest"},
}

func (f *fileSpec) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	type plain fileSpec // without this method
	source := path[:len(path)-len("[]")]
	d.DecodeStruct(n, (*plain)(f), path, fileKeys[strictyaml.LastKey(source)])
	f.node = n
}

type linkSpec struct {
	EndpointA    endpointSpec `yaml:"endpointA"`
	EndpointB    endpointSpec `yaml:"endpointB"`
	MTU          value[int]   `yaml:"mtu"`
	Connectivity raw          `yaml:"connectivity"`
	TopologyName raw          `yaml:"topologyName"`
}

type endpointSpec struct {
	NodeName      value[string] `yaml:"nodeName"`
	InterfaceName value[string] `yaml:"interfaceName"`
}

type configSpec struct {
	Metadata struct {
		Annotations raw `yaml:"annotations"`
		Labels      raw `yaml:"labels"`
	} `yaml:"metadata"`
	Deployment struct {
		ResourcesDefault            raw         `yaml:"resourcesDefault"`
		ResourcesByContainerlabKind raw         `yaml:"resourcesByContainerlabKind"`
		NodeSelectorsByImage        raw         `yaml:"nodeSelectorsByImage"`
		ContainerStopSignals        raw         `yaml:"containerStopSignals"`
		Rollout                     rolloutSpec `yaml:"rollout"`
		launcherSpec                `yaml:",inline"`
	} `yaml:"deployment"`
	ImagePull struct {
		RegistryMetadataTrust   []trustSpec `yaml:"registryMetadataTrust"`
		RegistryMetadataMirrors raw         `yaml:"registryMetadataMirrors"`
		imagePullSpec           `yaml:",inline"`
	} `yaml:"imagePull"`
	Rollout            rolloutSpec `yaml:"rollout"`
	InClusterDNSSuffix raw         `yaml:"inClusterDNSSuffix"`
	Naming             raw         `yaml:"naming"`
}

// trustSpec is how to reach a registry.
type trustSpec struct {
	Registry  value[string] `yaml:"registry"`
	PlainHTTP value[bool]   `yaml:"plainHTTP"`
	CABundle  value[string] `yaml:"caBundle"`

	node *yaml.Node // nil for what is no mapping
}

func (t *trustSpec) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	type plain trustSpec // without this method
	d.DecodeStruct(n, (*plain)(t), path, nil)
	if n.Kind == yaml.MappingNode {
		t.node = n
	}
}

// given returns the keys of a struct of raw values that the document has, and the place of
// the first.
func given(specs ...any) (keys []string, first *yaml.Node) {
	for _, spec := range specs {
		v := reflect.ValueOf(spec)
		for i := range v.NumField() {
			if n := v.Field(i).Interface().(raw).node; n != nil {
				keys = append(keys, v.Type().Field(i).Tag.Get("yaml"))
				if first == nil {
					first = n
				}
			}
		}
	}
	return keys, first
}
