package render

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// TestNeedsRequested: what a kind needs is requested, unless the topology or the policy
// says more.
func TestNeedsRequested(t *testing.T) {
	type node struct {
		memory int64
		cpu    float64
		needs  plan.Needs
		env    map[string]string
		cards  int
		policy *corev1.ResourceRequirements
	}
	for name, c := range map[string]struct {
		node
		requests, limits string
	}{
		"nothing known":     {node{}, "0 0", "0 0"},
		"the kind's":        {node{needs: plan.Needs{MinCPU: 4, MinMemory: 4 << 30}}, "400m 4Gi", "0 0"},
		"a card's":          {node{needs: plan.Needs{MinCPU: 4, MinMemory: 4 << 30}, cards: 1}, "0 0", "0 0"},
		"the topology's":    {node{needs: plan.Needs{MinCPU: 4, MinMemory: 4 << 30}, cpu: 1.5, memory: 6 << 30}, "150m 6Gi", "1500m 6Gi"},
		"the VM's":          {node{needs: plan.Needs{KVM: true, MinMemory: 1 << 30}, env: map[string]string{"QEMU_MEMORY": "18432", "QEMU_SMP": "4,sockets=1"}}, "400m 18Gi", "0 0"},
		"a VM of any size":  {node{needs: plan.Needs{KVM: true}}, "100m 2Gi", "0 0"},
		"the policy's":      {node{needs: plan.Needs{KVM: true}, policy: &corev1.ResourceRequirements{}}, "0 0", "0 0"},
		"only memory known": {node{needs: plan.Needs{MinMemory: 2 << 30}, cpu: 1}, "100m 2Gi", "1 0"},
	} {
		l := newTestLab("needs")
		n, p := l.node("r1", "linux")
		p.Containers[0].Memory, p.Containers[0].CPU, p.Containers[0].Env, p.Needs, n.Policy.Resources = c.memory, c.cpu, c.env, c.needs, c.policy
		for range c.cards {
			p.Containers = append(p.Containers, plan.Container{Name: "1", Image: "card"})
		}
		got := member{node: n, plan: p}.resources(len(p.Containers) - 1)
		check := func(what string, have corev1.ResourceList, want string) {
			if text := have.Cpu().String() + " " + have.Memory().String(); text != want {
				t.Errorf("%s: %s %s, want %s", name, what, text, want)
			}
		}
		check("requests", got.Requests, c.requests)
		check("limits", got.Limits, c.limits)
	}
}

// TestKVMWorkers: labels of KVM are preferred, or required where some worker has one.
func TestKVMWorkers(t *testing.T) {
	worker := func(labels map[string]string) *corev1.Node {
		labels["zone"] = "b"
		labels[corev1.LabelOSStable] = "linux"
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w", Labels: labels}}
	}
	for _, required := range []bool{false, true} {
		l := policy()
		l.Nodes[0].Policy.NodeSelector = nil
		l.opts.RequireKVM = required
		spec := deploymentOf(t, l, "vm").Spec.Template.Spec
		match := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: spec})
		for _, label := range append([]string{"other"}, contract.KVMLabels...) {
			ok, err := match.Match(worker(map[string]string{label: "true"}))
			if want := !required || label != "other"; err != nil || ok != want {
				t.Errorf("required %v, worker with %s: %v, %v", required, label, ok, err)
			}
		}
		if preferred := len(spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution); (preferred == 0) != required {
			t.Errorf("required %v: %d preferences", required, preferred)
		}
	}
}

// TestWithoutKVM: a node that can do without KVM lands anywhere, and prefers workers with it.
func TestWithoutKVM(t *testing.T) {
	l := policy()
	l.Nodes[0].Policy.NodeSelector, l.Nodes[0].Policy.KVM = nil, lab.KVMOptional
	l.opts.RequireKVM = true
	spec := deploymentOf(t, l, "vm").Spec.Template.Spec
	for _, v := range spec.Volumes {
		if v.HostPath != nil && v.HostPath.Path == "/dev/kvm" {
			t.Error("it mounts /dev/kvm")
		}
	}
	match := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: spec})
	ok, err := match.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w", Labels: map[string]string{"zone": "b", corev1.LabelOSStable: "linux"}}})
	if err != nil || !ok || len(spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != len(contract.KVMLabels) {
		t.Errorf("%v, %v: %+v", ok, err, spec.Affinity.NodeAffinity)
	}
}

func deploymentOf(t *testing.T, l *testLab, name string) *appsv1.Deployment {
	t.Helper()
	for _, o := range l.mustRender(t).Objects {
		if d, ok := o.Object.(*appsv1.Deployment); ok && d.Name == name {
			return d
		}
	}
	t.Fatalf("no Deployment %s", name)
	return nil
}

// TestPlacement: Pods are spread over workers, or prefer those with other Pods of the lab, next
// to what the policy prefers. Their templates do not depend on the links.
func TestPlacement(t *testing.T) {
	l := policy()
	spread := deploymentOf(t, l, "vm").Spec.Template.Spec
	if spread.Affinity.PodAffinity != nil || len(spread.TopologySpreadConstraints) != 1 {
		t.Errorf("spread: %+v, %+v", spread.Affinity.PodAffinity, spread.TopologySpreadConstraints)
	}
	own := corev1.PodAffinityTerm{TopologyKey: "rack", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	l = policy()
	l.Pack = true
	l.Nodes[0].Policy.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{own}}}
	packed := deploymentOf(t, l, "vm").Spec.Template.Spec
	affinity := packed.Affinity.PodAffinity
	if len(packed.TopologySpreadConstraints) != 0 || affinity == nil || len(affinity.RequiredDuringSchedulingIgnoredDuringExecution) != 1 || len(affinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Fatalf("pack: %+v, %+v", affinity, packed.TopologySpreadConstraints)
	}
	term := affinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm
	if term.TopologyKey != corev1.LabelHostname || len(term.LabelSelector.MatchLabels) != 1 || term.LabelSelector.MatchLabels[contract.LabelLab] == "" {
		t.Errorf("it prefers %+v", term)
	}
	if len(l.Nodes[0].Policy.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 0 {
		t.Error("the policy itself was changed")
	}
}

// TestLocalWires: the sidecar, and no other container, mounts the worker's folder, unless the
// policy forbids it.
func TestLocalWires(t *testing.T) {
	for _, forbidden := range []bool{false, true} {
		l := policy()
		l.NoLocalWires = forbidden
		spec := deploymentOf(t, l, "vm").Spec.Template.Spec
		volumes, mounts, want := 0, 0, 1
		if forbidden {
			want = 0
		}
		for _, v := range spec.Volumes {
			if v.HostPath != nil && v.HostPath.Path == contract.NearFolder {
				volumes++
			}
		}
		for _, c := range append(spec.InitContainers, spec.Containers...) {
			for _, m := range c.VolumeMounts {
				if m.Name != volumeNear {
					continue
				}
				mounts++
				if c.Name != contract.WireContainer || m.MountPath != contract.NearDir {
					t.Errorf("container %s mounts it at %s", c.Name, m.MountPath)
				}
			}
		}
		if volumes != want || mounts != want {
			t.Errorf("forbidden %v: %d volumes, %d mounts", forbidden, volumes, mounts)
		}
	}
}
