package doctor

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/probe"
)

// The matrix: how each kind of worker is known, and what it serves.
func TestRuntimes(t *testing.T) {
	for name, c := range map[string]struct {
		worker           corev1.Node
		runtime          string
		privileged, exec Serves
	}{
		"ordinary":           {worker("n1"), "kubelet", Yes, Yes},
		"EC2":                {worker("ip-10-0-0-1", func(w *corev1.Node) { w.Spec.ProviderID = "aws:///eu-west-1a/i-1" }), "kubelet", Yes, Yes},
		"kwok":               {worker("fake-1", func(w *corev1.Node) { w.Annotations = map[string]string{"kwok.x-k8s.io/node": "fake"} }), "kwok", No, No},
		"kwok's taint":       {worker("fake-1", tainted("kwok.x-k8s.io/node", "fake")), "kwok", No, No},
		"Fargate":            {worker("fargate-ip-10-0-0-1", labelled("eks.amazonaws.com/compute-type", "fargate")), "AWS Fargate", No, Yes},
		"EKS on EC2":         {worker("ip-10-0-0-1", labelled("eks.amazonaws.com/compute-type", "ec2")), "kubelet", Yes, Yes},
		"ACI":                {worker("virtual-node-aci-linux", labelled("type", "virtual-kubelet"), tainted("virtual-kubelet.io/provider", "azure")), "Azure Container Instances", No, Depends},
		"ECI":                {worker("vk", tainted("virtual-kubelet.io/provider", "alibabacloud"), labelled("type", "virtual-kubelet")), "Alibaba Cloud ECI", No, Yes},
		"super node":         {worker("eklet-subnet-1", labelled("node.kubernetes.io/instance-type", "eklet")), "Tencent super node", Depends, Yes},
		"Liqo":               {worker("milan", labelled("liqo.io/type", "virtual-node"), labelled("type", "virtual-node")), "Liqo", Depends, Yes},
		"interLink":          {worker("hpc", tainted("virtual-node.interlink/no-schedule", "true")), "interLink", No, No},
		"some virtual one":   {worker("vk", tainted("virtual-kubelet.io/provider", "mock")), "virtual kubelet", No, Depends},
		"virtual, by label":  {worker("vk", labelled("type", "virtual-kubelet")), "virtual kubelet", No, Depends},
		"gVisor":             {worker("sandbox", labelled("sandbox.gke.io/runtime", "gvisor")), "gVisor", No, Yes},
		"Autopilot":          {worker("gk3-main-pool-1-abc"), "GKE Autopilot", No, Yes},
		"Windows":            {worker("w1", labelled(corev1.LabelOSStable, "windows")), "Windows", No, Yes},
		"edge":               {worker("e1", labelled("node-role.kubernetes.io/edge", "")), "KubeEdge", Yes, Depends},
		"name in the middle": {worker("not-gk3-"), "kubelet", Yes, Yes},
	} {
		t.Run(name, func(t *testing.T) {
			r := RuntimeOf(&c.worker)
			if r.Name != c.runtime || r.Privileged != c.privileged || r.Exec != c.exec {
				t.Errorf("got %s (privileged %s, exec %s)", r.Name, r.Privileged, r.Exec)
			}
		})
	}
	seen := map[string]bool{}
	for _, r := range append(slices.Clone(runtimes), kubelet) {
		for _, s := range []Serves{r.Privileged, r.Exec, r.Logs, r.Proxy} {
			if s != Yes && s != No && s != Depends {
				t.Errorf("%s: %q is no answer", r.Name, s)
			}
		}
		if seen[r.Name] {
			t.Errorf("%s is there twice", r.Name)
		}
		seen[r.Name] = true
		if r.Name != kubelet.Name && r.Note == "" {
			t.Errorf("%s serves less and does not say why", r.Name)
		}
	}
}

// Which nodes may land on a virtual kubelet: render keeps them off by the label
// type, which not every one has, and by its taint, which a policy may tolerate.
func TestLanding(t *testing.T) {
	tolerant := pod("R2", "1m", "1Mi")
	tolerant.Spec.Tolerations = []corev1.Toleration{{Key: "eks.amazonaws.com/compute-type", Operator: corev1.TolerationOpExists}}
	bound := pod("R3", "1m", "1Mi")
	bound.Spec.NodeSelector = map[string]string{"rack": "a"}
	fargate := worker("fargate-1", labelled("eks.amazonaws.com/compute-type", "fargate"), tainted("eks.amazonaws.com/compute-type", "fargate"))
	for name, c := range map[string]struct {
		workers  []corev1.Node
		needs    Needs
		workersA []expect // checkWorkers
		runtimes []expect
	}{
		"ordinary": {[]corev1.Node{worker("n1")}, lab(pod("R1", "1m", "1Mi")), []expect{{"workers", OK, "1 of 1 worker"}}, nil},
		"kept off by the label": {[]corev1.Node{worker("n1"), worker("vk", labelled("type", "virtual-kubelet"))}, lab(pod("R1", "1m", "1Mi")),
			[]expect{{"workers", OK, "1 of 2 workers"}}, nil},
		"kept off by the taint": {[]corev1.Node{worker("n1"), fargate}, lab(pod("R1", "1m", "1Mi")), []expect{{"workers", OK, "1 of 2"}}, nil},
		"tolerated": {[]corev1.Node{worker("n1"), fargate}, lab(pod("R1", "1m", "1Mi"), tolerant),
			[]expect{{"workers", OK, "2 of 2"}}, []expect{{"worker fargate-1", Problem, "could be scheduled there: R2"}}},
		"perhaps": {[]corev1.Node{worker("milan", labelled("liqo.io/type", "virtual-node"))}, lab(pod("R1", "1m", "1Mi")),
			[]expect{{"workers", OK, "1 of 1"}}, []expect{{"worker milan", Warning, "Liqo: perhaps no privileged Pods"}}},
		"for nobody": {[]corev1.Node{worker("n1")}, lab(pod("R1", "1m", "1Mi"), bound),
			[]expect{{"workers", OK, "1 of 1"}, {"workers", Problem, "no worker accepts node R3"}}, nil},
		"cordoned": {[]corev1.Node{worker("n1", func(w *corev1.Node) { w.Spec.Unschedulable = true })}, Any(), []expect{{"workers", Problem, "0 of 1 worker"}}, nil},
		"not ready": {[]corev1.Node{worker("n1", func(w *corev1.Node) { w.Status.Conditions[0].Status = corev1.ConditionUnknown })}, Any(),
			[]expect{{"workers", Problem, "0 of 1 worker"}}, nil},
		"Windows": {[]corev1.Node{worker("w1", labelled(corev1.LabelOSStable, "windows"))}, Any(), []expect{{"workers", Problem, "0 of 1"}}, nil},
		"old kubelet": {[]corev1.Node{worker("n1", func(w *corev1.Node) { w.Status.NodeInfo.KubeletVersion = "v1.28.3" })}, Any(),
			[]expect{{"workers", OK, "1 of 1"}, {"workers", Warning, "n1 (v1.28.3)"}}, nil},
		"none": {nil, Any(), []expect{{"workers", Problem, "0 of 0 workers"}}, nil},
	} {
		f := good()
		f.Workers = c.workers
		t.Run(name, func(t *testing.T) {
			demand(t, checkWorkers(f, c.needs), c.workersA)
			demand(t, checkRuntimes(f, c.needs), c.runtimes)
		})
	}
	f := good()
	f.Workers, f.WorkersErr = nil, errForbidden
	demand(t, checkWorkers(f, Any()), []expect{{"workers", Warning, "cannot be read"}})
}

func TestTolerations(t *testing.T) {
	taint := corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}
	for name, c := range map[string]struct {
		toleration corev1.Toleration
		want       bool
	}{
		"everything":     {corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		"key":            {corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists}, true},
		"value":          {corev1.Toleration{Key: "k", Value: "v"}, true},
		"another value":  {corev1.Toleration{Key: "k", Operator: corev1.TolerationOpEqual, Value: "w"}, false},
		"another key":    {corev1.Toleration{Key: "l", Operator: corev1.TolerationOpExists}, false},
		"another effect": {corev1.Toleration{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}, false},
	} {
		if got := covers(c.toleration, taint); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestDevices(t *testing.T) {
	vm := pod("VM1", "1m", "1Mi")
	vm.KVM, vm.TUN = true, true
	for name, c := range map[string]struct {
		needs  Needs
		change func(*Facts)
		want   []expect
	}{
		"containers need none":   {lab(pod("R1", "1m", "1Mi")), nil, nil},
		"any lab, nothing known": {Any(), nil, nil},
		"unknown":                {lab(vm), nil, []expect{{"/dev/kvm", Warning, "no worker has a label for it; needed by VM1"}, {"/dev/net/tun", Warning, "no worker has a label"}}},
		"labelled":               {lab(vm), func(f *Facts) { f.Workers = []corev1.Node{worker("n1", labelled(contract.LabelKVM, "true"))} }, []expect{{"/dev/kvm", OK, "every worker"}, {"/dev/net/tun", Warning, "no worker has a label"}}},
		"labelled, by others":    {Any(), func(f *Facts) { f.Workers[0].Labels["feature.node.kubernetes.io/cpu-cpuid.VMX"] = "true" }, []expect{{"/dev/kvm", Warning, "available on n1, unknown on n2"}}},
		"probed, everywhere":     {lab(vm), func(f *Facts) { f.Probes = map[string]Probe{"n1": answers(1500), "n2": answers(1500)} }, []expect{{"/dev/kvm", OK, ""}, {"/dev/net/tun", OK, ""}}},
		"probed, nowhere": {lab(vm), func(f *Facts) {
			f.Probes = map[string]Probe{"n1": answers(1500, probe.KVM), "n2": answers(1500, probe.KVM)}
		}, []expect{{"/dev/kvm", Problem, "no worker has it; needed by VM1"}, {"/dev/net/tun", OK, ""}}},
		"probed, nowhere, any lab": {Any(), func(f *Facts) {
			f.Probes = map[string]Probe{"n1": answers(1500, probe.KVM), "n2": answers(1500, probe.KVM)}
		}, []expect{{"/dev/kvm", Warning, "no worker has it"}, {"/dev/net/tun", OK, ""}}},
		"the probe beats the label": {lab(vm), func(f *Facts) {
			f.Workers = []corev1.Node{worker("n1", labelled(contract.LabelKVM, "true"))}
			f.Probes = map[string]Probe{"n1": answers(1500, probe.KVM)}
		}, []expect{{"/dev/kvm", Problem, "no worker"}, {"/dev/net/tun", OK, ""}}},
	} {
		f := good()
		if c.change != nil {
			c.change(&f)
		}
		t.Run(name, func(t *testing.T) { demand(t, checkDevices(f, c.needs), c.want) })
	}
}

func TestCapacity(t *testing.T) {
	other := corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("3Gi")},
	}}}}}
	ended := other
	ended.Status.Phase = corev1.PodSucceeded
	sidecar := pod("R1", "1", "1Gi")
	sidecar.Spec.InitContainers = []corev1.Container{{RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
	}}}
	for name, c := range map[string]struct {
		pods   []Pod
		change func(*Facts)
		want   expect
	}{
		"room":              {[]Pod{pod("R1", "1", "3Gi"), pod("R2", "1", "3Gi")}, nil, expect{"capacity", OK, "requests of 2 Pods: 2.00 CPUs and 6.0 GiB"}},
		"one too large":     {[]Pod{pod("R1", "1", "5Gi")}, nil, expect{"capacity", Problem, "not enough is free (memory) for R1"}},
		"one too many":      {[]Pod{pod("R1", "1m", "3Gi"), pod("R2", "1m", "3Gi"), pod("R3", "1m", "3Gi")}, nil, expect{"capacity", Problem, "not enough is free (memory) for R3"}},
		"no CPUs":           {[]Pod{pod("R1", "3", "1Gi")}, nil, expect{"capacity", Problem, "not enough is free (cpu) for R1"}},
		"with the sidecar":  {[]Pod{sidecar}, nil, expect{"capacity", Problem, "not enough is free (cpu) for R1"}},
		"others' Pods":      {[]Pod{pod("R1", "1", "3Gi"), pod("R2", "1", "3Gi")}, func(f *Facts) { f.Pods = []corev1.Pod{other} }, expect{"capacity", Problem, "not enough is free (memory) for R2"}},
		"others' ended Pod": {[]Pod{pod("R1", "1", "3Gi"), pod("R2", "1", "3Gi")}, func(f *Facts) { f.Pods = []corev1.Pod{ended} }, expect{"capacity", OK, ""}},
		"too many Pods": {[]Pod{pod("R1", "1m", "1Mi"), pod("R2", "1m", "1Mi")}, func(f *Facts) {
			f.Workers = []corev1.Node{worker("n1", func(w *corev1.Node) { w.Status.Allocatable = list("2", "4Gi", "1") })}
		}, expect{"capacity", Problem, "not enough is free (pods) for R2"}},
		"others unknown": {[]Pod{pod("R1", "1", "1Gi")}, func(f *Facts) { f.PodsErr = errForbidden }, expect{"capacity", Warning, "by others is unknown"}},
	} {
		f := good()
		if c.change != nil {
			c.change(&f)
		}
		t.Run(name, func(t *testing.T) { demand(t, checkCapacity(f, lab(c.pods...)), []expect{c.want}) })
	}
	demand(t, checkCapacity(good(), Any()), nil)
	// A Pod that lands nowhere is reported once, by the workers' check.
	bound := pod("VM1", "8", "64Gi")
	bound.KVM, bound.Spec.NodeSelector = true, map[string]string{"rack": "a"}
	demand(t, checkCapacity(good(), lab(pod("R1", "1", "1Gi"), bound)), []expect{{"capacity", OK, "2 Pods"}})
	demand(t, checkDevices(good(), lab(bound)), nil)
}
