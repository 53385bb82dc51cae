package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// labs are what the goldens show, one file each.
var labs = map[string]func() *testLab{
	"two-routers": twoRouters,
	"shared-pod":  sharedPod,
	"chassis":     chassis,
	"outside":     outside,
	"policy":      policy,
	"docker":      docker,
	"stages":      stages,
}

// twoRouters: names that Kubernetes cannot carry, a startup-config, a licence, a
// certificate, kind steps and an exec list, readiness.
func twoRouters() *testLab {
	l := newTestLab("Two.Routers")
	n, p := l.node("R1", "nokia_srlinux")
	n.Aliases = []string{"leaf", "www.example.com"}
	p.Containers[0].Entrypoint = []string{"/tini", "--", "fixuid", "-q"}
	p.Containers[0].Cmd = []string{"sudo", "bash", "-c", "echo $(hostname) $$ yes"}
	p.Containers[0].User = "0:0"
	p.Containers[0].Env = map[string]string{"SRLINUX": "1", "PATTERN": "a$(b)c"}
	p.Containers[0].Sysctls = map[string]string{"net.ipv4.ip_forward": "0", "net.ipv6.conf.all.disable_ipv6": "0"}
	p.Containers[0].MgmtMAC = "1a:00:01:ff:00:00"
	p.Containers[0].Mounts = []plan.Mount{
		{Target: "/etc/opt/srlinux", Path: "config"},
		{Target: "/opt/srlinux/etc/license.key", Path: "license.key", ReadOnly: true},
		{Target: "/tmp/topology.yml", Path: "topology.yml", ReadOnly: true},
	}
	p.Files = []plan.File{
		{Path: "config", Mode: 0o2777, Dir: true},
		{Path: "config/config.json", Mode: 0o664, UID: 1002, GID: 1002, Ref: l.file([]byte("{\n  \"system\": true\n}\n"), false), Seed: true},
		{Path: "config/tls.key", Mode: 0o600, Certificate: "tls.key", Secret: true},
		{Path: "license.key", Mode: 0o644, Ref: l.file([]byte("1234-5678 licence\n"), true)},
		{Path: "topology.yml", Mode: 0o444, Content: []byte("chassis_type: 1\nmac: 1A:00:01:00:00:00\n")},
	}
	p.Needs = plan.Needs{SSSE3: true, Certificate: true}
	p.Steps = []plan.Step{
		{Name: "wait until the CLI answers", Wait: &plan.WaitStep{Argv: []string{"sr_cli", "-d", "info"}, Contains: "ready", IntervalSeconds: 1, TimeoutSeconds: 120}},
		{Name: "commit", Run: &plan.RunStep{Argv: []string{"bash", "-c", "sr_cli < /tmp/c"}}},
		{Name: "sr_cli show version", User: true, Run: &plan.RunStep{Argv: []string{"sr_cli", "show", "version"}}},
	}
	p.Readiness = &plan.Readiness{Reason: "kind", Healthcheck: lab.Healthcheck{Test: []string{"CMD-SHELL", "test -f /ready"}, Interval: 5, Timeout: 3, Retries: 2}}
	p.Interfaces = []plan.Interface{{Name: "e1-1", Alias: "ethernet-1/1"}}
	_, p2 := l.node("r2", "linux")
	p2.Containers[0].Env = map[string]string{"CLAB_INTFS": "1"}
	link := l.link(lab.LinkVeth, "R1:e1-1", "r2:eth1")
	link.Impairment = &lab.LinkImpairment{AToB: lab.Impairment{DelayMS: 10, Loss: 0.5}}
	return l
}

// sharedPod: network-mode container, a link inside the Pod, one to itself.
func sharedPod() *testLab {
	l := newTestLab("shared")
	l.node("a", "linux")
	_, pb := l.node("b", "linux")
	pb.Containers[0].Privileged = false
	pb.Files = []plan.File{{Path: "etc", Mode: 0o755, Dir: true}, {Path: "etc/b.conf", Mode: 0o644, Content: []byte("b\n")}}
	pb.Containers[0].Mounts = []plan.Mount{{Target: "/etc/b.conf", Path: "etc/b.conf"}, {Target: "/var/log", Path: "log"}}
	l.node("c", "linux")
	l.join("b", "a")
	l.byName("b").PIDMode = "container:a"
	l.byName("b").Ports = []lab.Port{{Container: 8443, Protocol: "TCP", Host: 8443}}
	l.link(lab.LinkVeth, "a:eth1", "c:eth1")
	l.link(lab.LinkVeth, "a:eth2", "b:eth3")
	l.link(lab.LinkVeth, "b:eth4", "b:eth5")
	return l
}

// chassis: cards as containers of one Pod, tmpfs and shm.
func chassis() *testLab {
	l := newTestLab("chassis")
	n, p := l.node("sr1", "nokia_srsim")
	n.Components = []lab.Component{{Slot: "A"}, {Slot: "1"}}
	p.Containers = []plan.Container{
		{Name: "a", Image: "srsim:25", Privileged: true, Env: map[string]string{"NOKIA_SROS_SLOT": "A"}, Tmpfs: map[string]string{"/run": "size=64m,mode=755", "/tmp": ""}, ShmSize: 256 << 20},
		{Name: "1", Image: "srsim:25", Privileged: true, Env: map[string]string{"NOKIA_SROS_SLOT": "1"}, Tmpfs: map[string]string{"/run": ""}},
	}
	p.Steps = []plan.Step{{Container: "1", Write: &plan.WriteStep{Path: "/etc/card", Mode: 0o644, Content: []byte("card\n")}}}
	p.LinkApplyMode = "recreate"
	n.Labels = map[string]string{"graph-icon": "router"}
	return l
}

// outside: bridges and links that leave the lab.
func outside() *testLab {
	l := newTestLab("outside")
	l.bridge("switch")
	l.bridge("a-very-long-bridge-name")
	n, _ := l.node("r1", "linux")
	l.link(lab.LinkVeth, "r1:eth1", "switch:p1")
	l.link(lab.LinkVeth, "r1:eth2", "a-very-long-bridge-name:p1")
	l.link(lab.LinkHost, "r1:eth3").HostInterface = "r1-eth3"
	m := l.link(lab.LinkMacvlan, "r1:eth4")
	m.HostInterface, m.MacvlanMode, m.MTU = "enp0s3", "bridge", 0
	l.link(lab.LinkMgmtNet, "r1:eth5").HostInterface = "r1-mgmt"
	v := l.link(lab.LinkVXLAN, "r1:eth6")
	v.VXLAN, v.MTU = &lab.VXLAN{Remote: "192.0.2.1", VNI: 100, DstPort: 14789}, 0
	v = l.link(lab.LinkVXLANStitch, "r1:eth7")
	v.VXLAN = &lab.VXLAN{Remote: "192.0.2.2", VNI: 101, DstPort: 4789}
	l.link(lab.LinkDummy, "r1:eth8")
	n.Endpoints[0].IPv4 = netip.MustParsePrefix("10.0.0.1/30")
	h := l.bridge("host1")
	h.Kind = "host"
	return l
}

// policy: everything that a profile sets.
func policy() *testLab {
	l := newTestLab("policy")
	n, p := l.node("vm", "vr-sros")
	p.Needs = plan.Needs{KVM: true, MinMemory: 4 << 30}
	p.Persist = []string{"tftpboot"}
	p.Files = []plan.File{{Path: "tftpboot", Mode: 0o777, Dir: true}}
	p.Containers[0].Mounts = []plan.Mount{{Target: "/tftpboot", Path: "tftpboot"}, {Target: "/data", Volume: "My Data"}, {Target: "/scratch", Anonymous: true}}
	n.Policy = lab.Policy{
		Expose: &lab.Expose{Type: "LoadBalancer", UseMgmtAddress: true, Ports: []lab.Port{{Container: 22, Protocol: "TCP"}}},
		Resources: &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("6Gi")},
		},
		NodeSelector: map[string]string{"pool": "vm"},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}},
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}},
			},
		}}},
		Tolerations:      []corev1.Toleration{{Key: "vm", Operator: corev1.TolerationOpExists}},
		Persistence:      &lab.Persistence{Enabled: true, Size: "10Gi", StorageClass: "fast"},
		ImagePullPolicy:  "Always",
		ImagePullSecrets: []string{"registry"},
		Liveness:         &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}},
		StrictExec:       new(true),
	}
	p.Steps = []plan.Step{{User: true, Name: "ls", Run: &plan.RunStep{Argv: []string{"ls"}}}}
	l.opts.MapImage = []ImageRule{{From: "example.com/*", To: "registry.local/mirror/*"}, {From: "ghcr.io/c9s-lab/c9s", To: "registry.local/c9s"}}
	l.opts.WireKey = []byte("0123456789abcdef0123456789abcdef")
	l.opts.Certificates = map[string]Certificate{"vm": {CA: []byte("ca"), Cert: []byte("cert"), Key: []byte("key")}}
	return l
}

// docker: what of Docker a container's settings become.
func docker() *testLab {
	l := newTestLab("docker")
	n, p := l.node("box", "linux")
	n.SecurityOpts = []string{"seccomp=unconfined", "apparmor:mine", "no-new-privileges:true", "label=level:s0:c1", "systempaths=unconfined"}
	n.DNS = &lab.DNS{Servers: []string{"192.0.2.53"}, Search: []string{"lab.test"}, Options: []string{"ndots:1"}}
	c := &p.Containers[0]
	c.Privileged = false
	c.CapAdd = []string{"CAP_NET_ADMIN", "sys_admin"}
	c.Devices = []string{"/dev/net/tun", "/dev/sda:/dev/xvda:rwm"}
	c.Memory, c.CPU = 512<<20, 1.5
	c.User = "1000"
	c.Mounts = []plan.Mount{{Target: "/lib/modules", HostPath: "/lib/modules", ReadOnly: true}}
	c.Sysctls = map[string]string{"net.core.somaxconn": "1024", "kernel.shmmax": "68719476736"}
	n2, p2 := l.node("native", "linux")
	n2.NetworkMode, n2.MgmtIPv4, n2.MgmtIPv6, n2.PIDMode = lab.NetworkHost, netip.Addr{}, netip.Addr{}, "host"
	n2.DNS = n.DNS
	p2.Containers[0].Entrypoint = []string{"/bin/sleep", "infinity"}
	n3, _ := l.node("alone", "linux")
	n3.NetworkMode, n3.MgmtIPv4, n3.MgmtIPv6 = lab.NetworkNone, netip.Addr{}, netip.Addr{}
	n3.DNS = &lab.DNS{Search: []string{"lab.test"}}
	l.opts.NoController = true
	return l
}

// stages: waiting for each other.
func stages() *testLab {
	l := newTestLab("stages")
	first, p := l.node("first", "linux")
	first.StartupDelay = 30
	p.Readiness = &plan.Readiness{Healthcheck: lab.Healthcheck{Test: []string{"CMD", "/ready"}}}
	second, p2 := l.node("second", "linux")
	second.Stages = lab.Stages{
		lab.StageCreate:      {WaitFor: []lab.WaitFor{{Node: "first", Stage: lab.StageHealthy}}},
		lab.StageCreateLinks: {WaitFor: []lab.WaitFor{{Node: "first", Stage: lab.StageCreateLinks}}},
		lab.StageConfigure: {
			WaitFor: []lab.WaitFor{{Node: "first", Stage: lab.StageConfigure}},
			Exec: []lab.StageExec{
				{Exec: lab.Exec{Argv: []string{"a"}, Raw: "a"}, Phase: "on-enter"},
				{Exec: lab.Exec{Argv: []string{"b"}, Raw: "b"}, Phase: "on-exit"},
			},
		},
	}
	p2.Steps = []plan.Step{
		{Name: "kind", CLI: &plan.CLIStep{Argv: []string{"Cli"}, Lines: []string{"enable", "write"}}},
		{Name: "user", User: true, Run: &plan.RunStep{Argv: []string{"user"}, Input: "x\n", Detach: true}},
	}
	l.node("third", "linux")
	return l
}

func TestGolden(t *testing.T) {
	for name, build := range labs {
		t.Run(name, func(t *testing.T) {
			out, diags := build().render(t)
			if out == nil {
				t.Fatal(diagText(diags))
			}
			golden(t, name+".yaml", stream(t, out.Objects, manifest.YAML))
			golden(t, name+".txt", []byte(diagText(diags)))
		})
	}
}

// TestSame renders every lab several times: the bytes never differ.
func TestSame(t *testing.T) {
	for name, build := range labs {
		want := stream(t, build().mustRender(t).Objects, manifest.YAML)
		for range 5 {
			if got := stream(t, build().mustRender(t).Objects, manifest.YAML); !bytes.Equal(want, got) {
				t.Fatalf("%s differs between renders", name)
			}
		}
	}
}

// TestStrict decodes what is written as an API server does that rejects unknown
// and doubled fields, and encodes it again.
func TestStrict(t *testing.T) {
	decoder := kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, clientscheme.Scheme, clientscheme.Scheme, kjson.SerializerOptions{Yaml: true, Strict: true})
	for name, build := range labs {
		for _, o := range build().mustRender(t).Objects {
			text := stream(t, []manifest.Object{o}, manifest.YAML)
			obj, _, err := decoder.Decode(text, nil, nil)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			want, again := jsonOf(t, o), jsonOf(t, manifest.Object{Object: obj})
			if again != want {
				t.Fatalf("%s: not the same after decoding:\n%s\n%s", name, want, again)
			}
		}
	}
}

// TestManifestsAreRead: what is rendered for a Pod is what the Pod's programs accept.
func TestManifestsAreRead(t *testing.T) {
	found := 0
	for name, build := range labs {
		for _, o := range build().mustRender(t).Objects {
			cm, ok := o.Object.(*corev1.ConfigMap)
			if !ok || cm.Data[contract.ManifestFile] == "" {
				continue
			}
			found++
			if _, err := contract.ParseManifest([]byte(cm.Data[contract.ManifestFile])); err != nil {
				t.Errorf("%s, %s: %v", name, cm.Name, err)
			}
		}
	}
	if found < len(labs) {
		t.Errorf("%d manifests in %d labs", found, len(labs))
	}
}

// TestNoise: nothing of what the API's types write for nothing, and nothing of
// clabernetes'.
func TestNoise(t *testing.T) {
	for name, build := range labs {
		text := string(stream(t, build().mustRender(t).Objects, manifest.YAML))
		for _, bad := range []string{"creationTimestamp", "status:\n", "status: {}", "strategy: {}", "resources: {}", "null", "c9s.run", "14789\n", "14790\n", "14791\n"} {
			if strings.Contains(text, bad) && !(bad == "14789\n" && name == "outside") {
				t.Errorf("%s has %q", name, bad)
			}
		}
	}
}

func TestJSONList(t *testing.T) {
	out := sharedPod().mustRender(t)
	golden(t, "shared-pod.json", stream(t, out.Objects[:3], manifest.JSON))
	golden(t, "empty.json", stream(t, nil, manifest.JSON))
}

// TestOneMoreNode: a node that is linked to nothing changes no other node's
// objects, only the lab's directory, topology and allocations.
func TestOneMoreNode(t *testing.T) {
	l := mesh(100, 250)
	before := byName(t, l.mustRender(t))
	l.node("newcomer", "linux")
	after := byName(t, l.mustRender(t))
	for key, text := range before {
		changes := slices.ContainsFunc([]string{"c9s-directory", "c9s-topology", "c9s-allocations"}, func(name string) bool { return strings.Contains(key, name) })
		if same := after[key] == text; same == changes {
			t.Errorf("%s: changed %t, want %t", key, !same, changes)
		}
	}
	for key := range after {
		if _, ok := before[key]; !ok && !strings.Contains(key, " newcomer") {
			t.Errorf("%s is new", key)
		}
	}
}

// TestEditElsewhere: lines that move, and another version of the planner, restart
// no Pod; nor does a change of links.
func TestEditElsewhere(t *testing.T) {
	templates := func(l *testLab) map[string]string {
		out := map[string]string{}
		for _, o := range l.mustRender(t).Objects {
			if d, ok := o.Object.(*appsv1.Deployment); ok {
				text, err := json.Marshal(d.Spec.Template)
				if err != nil {
					t.Fatal(err)
				}
				out[o.Group] = string(text)
			}
		}
		return out
	}
	want := templates(twoRouters())
	l := twoRouters()
	for _, n := range l.Nodes {
		n.Pos.Line += 7
	}
	l.opts.Version = "1.0.1"
	for _, p := range l.plans {
		p.Planner = "builtin/0.80.0"
	}
	l.link(lab.LinkVeth, "R1:e1-2", "r2:eth2")
	for group, text := range templates(l) {
		if text != want[group] {
			t.Errorf("%s: the Pod changed:\n%s\n%s", group, want[group], text)
		}
	}
}

func TestOnly(t *testing.T) {
	l := sharedPod()
	l.opts.Only = []string{"b", "c"}
	groups := map[string]bool{}
	for _, o := range l.mustRender(t).Objects {
		groups[o.Group] = true
	}
	if !groups["nodes/a.yaml"] || !groups["nodes/c.yaml"] || !groups["lab.yaml"] {
		t.Errorf("groups %v: want the Pods of b and c, and the lab's", groups)
	}
	l.opts.Only = []string{"c"}
	for _, o := range l.mustRender(t).Objects {
		if o.Group == "nodes/a.yaml" {
			t.Fatal("a is rendered")
		}
	}
	l.opts.Only = []string{"nobody"}
	if out, diags := l.render(t); out != nil || len(diags) != 1 || diags[0].Code != CodeUnknownNode {
		t.Errorf("want %s, have %s", CodeUnknownNode, diagText(diags))
	}
}

func byName(t *testing.T, out *Output) map[string]string {
	m := map[string]string{}
	for _, o := range out.Objects {
		m[keyOf(t, o)] = jsonOf(t, o)
	}
	return m
}

// keyOf returns an object's kind and name.
func keyOf(t *testing.T, o manifest.Object) string {
	t.Helper()
	meta, ok := o.Object.(metav1.Object)
	if !ok {
		t.Fatalf("%T has no metadata", o.Object)
	}
	return o.Kind() + " " + meta.GetName()
}

func jsonOf(t *testing.T, o manifest.Object) string {
	t.Helper()
	data, err := o.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// mesh is a lab of n linux-like nodes and links between them.
func mesh(n, links int) *testLab {
	l := newTestLab("mesh")
	for i := range n {
		node, p := l.node(fmt.Sprintf("r%04d", i), "linux")
		p.Containers[0].Env = map[string]string{"CLAB_LABEL_CLAB_NODE_NAME": node.Name, "CLAB_INTFS": "8", "NO_PROXY": "localhost,127.0.0.1"}
		p.Containers[0].Sysctls = map[string]string{"net.ipv4.ip_forward": "1"}
		p.Files = []plan.File{{Path: "frr.conf", Mode: 0o644, Ref: l.file(fmt.Appendf(nil, "hostname %s\nrouter bgp %d\n neighbor 10.0.0.1 remote-as 1\n!\n", node.Name, i), false)}}
		p.Containers[0].Mounts = []plan.Mount{{Target: "/etc/frr/frr.conf", Path: "frr.conf"}}
		p.Steps = []plan.Step{{User: true, Run: &plan.RunStep{Argv: []string{"ip", "link", "show"}}}}
	}
	nodes := map[string]*lab.Node{}
	for _, node := range l.Nodes {
		nodes[node.Name] = node
	}
	for i := range links {
		a, b := l.Nodes[i%n], l.Nodes[(i+1+i/n)%n]
		l.link(lab.LinkVeth, fmt.Sprintf("%s:eth%d", a.Name, len(a.Endpoints)+1), fmt.Sprintf("%s:eth%d", b.Name, len(b.Endpoints)+1))
	}
	return l
}

func BenchmarkRender1000(b *testing.B) {
	l := mesh(1000, 4000)
	b.ReportAllocs()
	for b.Loop() {
		var w countWriter
		if err := manifest.WriteStream(&w, l.mustRender(b).Objects, manifest.YAML); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(w), "bytes")
	}
}

func BenchmarkWriteStream1000(b *testing.B) {
	objs := mesh(1000, 4000).mustRender(b).Objects
	b.ReportAllocs()
	for b.Loop() {
		var w countWriter
		if err := manifest.WriteStream(&w, objs, manifest.YAML); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(objs)), "us/object")
}

type countWriter int

func (w *countWriter) Write(p []byte) (int, error) {
	*w += countWriter(len(p))
	return len(p), nil
}

// TestExternalAuthorityIsASecret keeps a CA's key out of everything but its Secret.
func TestExternalAuthorityIsASecret(t *testing.T) {
	l := newTestLab("ca")
	l.node("a", "linux")
	l.CA = &lab.CA{Cert: l.file([]byte("the certificate"), false), Key: l.file([]byte("the key"), true)}
	found := false
	for _, o := range l.mustRender(t).Objects {
		data, err := o.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := o.Object.(*corev1.Secret); ok && s.Name == contract.CASecret {
			found = o.Secret && o.Group == "secrets/lab.yaml" && string(s.Data["tls.crt"]) == "the certificate" && string(s.Data["tls.key"]) == "the key"
		} else if strings.Contains(string(data), "the key") {
			t.Errorf("%s holds the key", o.Group)
		}
	}
	if !found {
		t.Error("the authority is not in its Secret")
	}
}
