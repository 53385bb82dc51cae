package render

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/apicheck"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// TestDiagnostics: one node "r1" next to "r2", and what render says to a change.
func TestDiagnostics(t *testing.T) {
	tests := []struct {
		name   string
		change func(l *testLab, n *lab.Node, p *plan.Plan)
		want   diag.Code
		errors bool
	}{
		{"no plan", func(l *testLab, n *lab.Node, p *plan.Plan) { delete(l.plans, "r1") }, CodePlanMissing, true},
		{"lost bytes", func(l *testLab, n *lab.Node, p *plan.Plan) {
			p.Files = []plan.File{{Path: "a", Ref: &lab.FileRef{Digest: "sha256:00", Size: 1}}}
		}, CodeFileMissing, true},
		{"sysctl of the worker", func(l *testLab, n *lab.Node, p *plan.Plan) {
			p.Containers[0].Sysctls = map[string]string{"vm.max_map_count": "1"}
		}, CodeSysctl, true},
		{"user by name", func(l *testLab, n *lab.Node, p *plan.Plan) { p.Containers[0].User = "frr" }, CodeUser, true},
		{"group by name", func(l *testLab, n *lab.Node, p *plan.Plan) { p.Containers[0].User = "0:frr" }, CodeUser, true},
		{"processes of another Pod", func(l *testLab, n *lab.Node, p *plan.Plan) { n.PIDMode = "container:r2" }, apicheck.CodePIDMode, true},
		{"unknown pid-mode", func(l *testLab, n *lab.Node, p *plan.Plan) { n.PIDMode = "private" }, apicheck.CodePIDMode, true},
		{"worker's network and a link", func(l *testLab, n *lab.Node, p *plan.Plan) {
			n.NetworkMode = lab.NetworkHost
			l.link(lab.LinkVeth, "r1:eth1", "r2:eth1")
		}, CodeHostNetwork, true},
		{"seccomp profile", func(l *testLab, n *lab.Node, p *plan.Plan) { n.SecurityOpts = []string{"seccomp=/p.json"} }, apicheck.CodeSecurityOpt, false},
		{"no new privileges, privileged", func(l *testLab, n *lab.Node, p *plan.Plan) { n.SecurityOpts = []string{"no-new-privileges"} }, apicheck.CodeSecurityOpt, false},
		{"tmpfs option", func(l *testLab, n *lab.Node, p *plan.Plan) {
			p.Containers[0].Tmpfs = map[string]string{"/run": "noexec", "/of/the/kind": "nodev"}
			n.Tmpfs = map[string]string{"/run": "noexec"}
		}, CodeTmpfsOption, false},
		{"tmpfs size", func(l *testLab, n *lab.Node, p *plan.Plan) {
			p.Containers[0].Tmpfs = map[string]string{"/run": "size=much"}
		}, CodeQuantity, true},
		{"device", func(l *testLab, n *lab.Node, p *plan.Plan) {
			p.Containers[0].Privileged, p.Containers[0].Devices = false, []string{"/dev/fuse"}
		}, CodeDevice, false},
		{"volume", func(l *testLab, n *lab.Node, p *plan.Plan) {
			p.Containers[0].Mounts = []plan.Mount{{Target: "/v", Anonymous: true}}
		}, CodeVolumeEmpty, false},
		{"wait for the end", func(l *testLab, n *lab.Node, p *plan.Plan) {
			n.Stages = lab.Stages{lab.StageCreate: {WaitFor: []lab.WaitFor{{Node: "r2", Stage: lab.StageExit}}}}
		}, CodeWaitExit, true},
		{"commands at the end", func(l *testLab, n *lab.Node, p *plan.Plan) {
			n.Stages = lab.Stages{lab.StageExit: {Exec: []lab.StageExec{{Exec: lab.Exec{Argv: []string{"a"}}}}}}
		}, CodeStageExec, true},
		{"commands on a bridge", func(l *testLab, n *lab.Node, p *plan.Plan) {
			b := l.bridge("br")
			b.Stages = lab.Stages{lab.StageConfigure: {Exec: []lab.StageExec{{Exec: lab.Exec{Argv: []string{"a"}}}}}}
		}, CodeStageExec, true},
		{"claim size", func(l *testLab, n *lab.Node, p *plan.Plan) {
			p.Persist = []string{"a"}
			n.Policy.Persistence = &lab.Persistence{Enabled: true, Size: "many"}
		}, CodeQuantity, true},
		{"alias taken", func(l *testLab, n *lab.Node, p *plan.Plan) { n.Aliases = []string{"r2"} }, CodeAlias, false},
		{"port of the sidecar", func(l *testLab, n *lab.Node, p *plan.Plan) {
			n.Ports = []lab.Port{{Container: 14800, Protocol: "udp"}}
		}, CodeReservedPort, true},
		{"expose type", func(l *testLab, n *lab.Node, p *plan.Plan) { n.Policy.Expose = &lab.Expose{Type: "Ingress"} }, CodeExposeType, true},
		{"interface that Linux reserves", func(l *testLab, n *lab.Node, p *plan.Plan) { l.link(lab.LinkVeth, "r1:all", "r2:eth1") }, CodeInterfaceReserved, true},
		{"bridge of the sidecar's name", func(l *testLab, n *lab.Node, p *plan.Plan) {
			br, _ := l.node("c9sm", "bridge")
			br.RootNamespace = true
		}, CodeInterfaceReserved, true},
		{"bridge of the loopback's name", func(l *testLab, n *lab.Node, p *plan.Plan) {
			br, _ := l.node("lo", "bridge")
			br.RootNamespace = true
		}, CodeInterfaceReserved, true},
		{"interface of the sidecar", func(l *testLab, n *lab.Node, p *plan.Plan) { l.link(lab.LinkVeth, "r1:eth0", "r2:eth1") }, CodeInterfaceReserved, true},
		{"one interface twice in a Pod", func(l *testLab, n *lab.Node, p *plan.Plan) {
			l.node("r3", "linux")
			l.join("r3", "r1")
			l.link(lab.LinkVeth, "r1:eth1", "r2:eth1")
			l.link(lab.LinkVeth, "r3:eth1", "r2:eth2")
		}, CodeInterfaceTwice, true},
		{"sysctl twice in a Pod", func(l *testLab, n *lab.Node, p *plan.Plan) {
			_, p3 := l.node("r3", "linux")
			l.join("r3", "r1")
			p.Containers[0].Sysctls = map[string]string{"net.a": "1"}
			p3.Containers[0].Sysctls = map[string]string{"net.a": "2"}
		}, CodeSysctlConflict, true},
		{"two policies in a Pod", func(l *testLab, n *lab.Node, p *plan.Plan) {
			n3, _ := l.node("r3", "linux")
			l.join("r3", "r1")
			n.Policy.NodeSelector = map[string]string{"a": "b"}
			n3.Policy.NodeSelector = map[string]string{"a": "c"}
		}, CodePolicyConflict, true},
		{"a veth with one end", func(l *testLab, n *lab.Node, p *plan.Plan) { l.link(lab.LinkVeth, "r1:eth1") }, CodeLinkEnds, true},
		{"mount twice", func(l *testLab, n *lab.Node, p *plan.Plan) {
			p.Containers[0].Mounts = []plan.Mount{{Target: "/a", Path: "x"}, {Target: "/a/", Path: "y"}}
		}, apicheck.CodeMountPath, true},
		{"a node called like the lab's Service", func(l *testLab, n *lab.Node, p *plan.Plan) {
			n3, _ := l.node("c9s-nodes", "linux")
			n3.Ports = []lab.Port{{Container: 22}}
		}, apicheck.CodeDuplicate, true},
		{"a digit first", func(l *testLab, n *lab.Node, p *plan.Plan) {
			n3, _ := l.node("1", "linux")
			n3.Ports = []lab.Port{{Container: 22}}
		}, apicheck.CodeName, true},
		{"no image", func(l *testLab, n *lab.Node, p *plan.Plan) { p.Containers[0].Image = "" }, apicheck.CodeImage, true},
		{"variable with =", func(l *testLab, n *lab.Node, p *plan.Plan) { p.Containers[0].Env = map[string]string{"A=B": "c"} }, apicheck.CodeEnvName, true},
		{"request above limit", func(l *testLab, n *lab.Node, p *plan.Plan) {
			n.Policy.Resources = &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": quantity("2")}, Limits: corev1.ResourceList{"cpu": quantity("1")},
			}
		}, apicheck.CodeResources, true},
		{"resource of no domain", func(l *testLab, n *lab.Node, p *plan.Plan) {
			n.Policy.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"gpu": quantity("1")}}
		}, apicheck.CodeResources, true},
		{"half a device", func(l *testLab, n *lab.Node, p *plan.Plan) {
			one := corev1.ResourceList{"example.org/gpu": quantity("500m")}
			n.Policy.Resources = &corev1.ResourceRequirements{Limits: one, Requests: one}
		}, apicheck.CodeResources, true},
		{"device without a limit", func(l *testLab, n *lab.Node, p *plan.Plan) {
			n.Policy.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"example.org/gpu": quantity("1")}}
		}, apicheck.CodeResources, true},
		{"affinity's operator", func(l *testLab, n *lab.Node, p *plan.Plan) {
			n.Policy.Affinity = nodeAffinity(corev1.NodeSelectorRequirement{Key: "a", Operator: "Is", Values: []string{"b"}})
		}, apicheck.CodeSelector, true},
		{"affinity's values", func(l *testLab, n *lab.Node, p *plan.Plan) {
			n.Policy.Affinity = nodeAffinity(corev1.NodeSelectorRequirement{Key: "a", Operator: corev1.NodeSelectorOpExists, Values: []string{"b"}})
		}, apicheck.CodeSelector, true},
		{"affinity's topology", func(l *testLab, n *lab.Node, p *plan.Plan) {
			n.Policy.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1}},
			}}
		}, apicheck.CodeSelector, true},
		{"empty probe", func(l *testLab, n *lab.Node, p *plan.Plan) { n.Policy.Liveness = &corev1.Probe{} }, apicheck.CodeProbe, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := newTestLab("diag")
			n, p := l.node("r1", "linux")
			l.node("r2", "linux")
			test.change(l, n, p)
			out, diags := l.render(t)
			if (out == nil) != test.errors {
				t.Errorf("rendered %t, want %t", out != nil, !test.errors)
			}
			for _, d := range diags {
				if d.Code == test.want {
					if (d.Severity == diag.Error) != test.errors {
						t.Errorf("severity %s", d.Severity)
					}
					if _, ok := diag.Explain(d.Code); !ok {
						t.Errorf("%s is not declared", d.Code)
					}
					if d.Line == 0 {
						t.Errorf("%s has no line", d)
					}
					return
				}
			}
			t.Errorf("want %s, have:\n%s", test.want, diagText(diags))
		})
	}
}

// nodeAffinity requires one expression.
func nodeAffinity(e corev1.NodeSelectorRequirement) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{e}}},
	}}}
}

// TestAllAtOnce: every problem of a lab is reported, sorted.
func TestAllAtOnce(t *testing.T) {
	l := newTestLab("many")
	for _, name := range []string{"a", "b", "c"} {
		_, p := l.node(name, "linux")
		p.Containers[0].User = "frr"
		p.Containers[0].Sysctls = map[string]string{"vm.swappiness": "1"}
	}
	_, diags := l.render(t)
	if len(diags) != 6 || diags[0].Line != 10 || diags[5].Line != 30 {
		t.Errorf("want two of each node in order, have:\n%s", diagText(diags))
	}
}

// TestHostname: the Pod's is a DNS label, the device's what was written.
func TestHostname(t *testing.T) {
	l := newTestLab("names")
	n, _ := l.node("PE_1", "linux")
	n.MgmtIPv4 = netip.Addr{}
	text := string(stream(t, l.mustRender(t).Objects, manifest.YAML))
	for _, want := range []string{"hostname: pe-1\n", `"hostname": "PE_1"`, "c9s.dev/node-name: PE_1", "c9s.dev/node: pe-1\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q", want)
		}
	}
}
