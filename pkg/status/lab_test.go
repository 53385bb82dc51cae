package status

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
)

func readyPod(name, node string) *corev1.Pod {
	p := onWorker(inits(prepared, running(WireContainer)), devices(running(name)), with(corev1.PodReady, corev1.ConditionTrue, "", ""))
	p.Name = name + "-1"
	p.Labels = map[string]string{contract.LabelPod: name, contract.LabelKind: "linux"}
	p.Annotations = map[string]string{contract.AnnotationContainers: `{"` + node + `":["` + name + `"]}`}
	p.Spec.Containers = []corev1.Container{{Name: name, Image: "frr:1"}}
	return p
}

func nodeService(name, node, id, kind string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{contract.LabelNode: id, contract.LabelKind: kind},
			Annotations: map[string]string{contract.AnnotationNodeName: node, contract.AnnotationSource: "topo.clab.yml:7"}},
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.1.1"},
	}
}

func TestCompute(t *testing.T) {
	r1, old := readyPod("r1", "R1"), readyPod("r1", "R1")
	old.Name, old.DeletionTimestamp = "r1-0", new(metav1.Now())
	d := deployment(1)
	d.Labels = map[string]string{contract.LabelKind: "frr"}
	d.Annotations = map[string]string{contract.AnnotationSource: "topo.clab.yml:7"}
	balanced := nodeService("r1", "R1", "r1", "frr")
	balanced.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}}
	got := Compute(Facts{
		Name: "demo", Namespace: "ns",
		Directory:   contract.Directory{Nodes: []contract.DirectoryNode{{Name: "R1", Pod: "r1", IPv4: netip.MustParseAddr("172.20.20.2")}, {Name: "R2", Pod: "r2"}}},
		Deployments: []*appsv1.Deployment{d},
		Pods:        []*corev1.Pod{r1, old},
		Services:    []*corev1.Service{balanced, nodeService("edge", "R1", "r1", "frr")},
		Sidecars: map[string]Answer{"r1": {Status: api.Status{Programs: []api.Program{{Node: "R1", Result: contract.Result{Steps: []contract.StepResult{
			{Index: 0}, {Index: 1, ExitCode: 2, Output: " no such file\n"}, {Index: 2, Running: true}, {Index: 3, Name: "hostname", User: true, Output: "R1\n"},
		}}}}}}},
	})
	want := []Node{
		{
			Name: "R1", Kind: "frr", Image: "frr:1", State: StateReady, Worker: "n1", Pod: "r1", PodName: "r1-1", Exposed: "192.0.2.9",
			IPv4: netip.MustParseAddr("172.20.20.2"), Started: created, Source: "topo.clab.yml:7", Age: new(0.0),
			Commands: []Command{{Step: 2, ExitCode: 2, Output: "no such file"}, {Step: 3, Running: true}, {Step: 4, Command: "hostname", User: true, Output: "R1"}},
		},
		{Name: "R2", Pod: "r2", State: StatePending},
	}
	if diff := cmp.Diff(want, got.Nodes, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if got.State != LabDeploying || got.Version != Version {
		t.Errorf("lab %s, version %s", got.State, got.Version)
	}
}

// A chassis' containers and a group's members are not called as their Services, and
// the Pod has the kind of its primary only.
func TestComputeSharedPod(t *testing.T) {
	p := readyPod("sr1", "SR1")
	p.Labels[contract.LabelKind] = "sros"
	p.Annotations[contract.AnnotationContainers] = `{"SR1":["sr1-a","sr1-1"],"SNIFFER":["sniffer"]}`
	p.Spec.Containers = []corev1.Container{{Name: "sr1-a", Image: "sros:1"}, {Name: "sr1-1", Image: "sros:1"}, {Name: "sniffer", Image: "tools:1"}}
	got := Compute(Facts{
		Directory: contract.Directory{Nodes: []contract.DirectoryNode{{Name: "SNIFFER", Pod: "sr1", Kind: "linux"}, {Name: "SR1", Pod: "sr1"}}},
		Pods:      []*corev1.Pod{p},
		Services:  []*corev1.Service{nodeService("sr1", "SR1", "sr1", "sros")},
	})
	type facts struct{ Name, Kind, Image, Exposed string }
	var have []facts
	for _, n := range got.Nodes {
		have = append(have, facts{n.Name, n.Kind, n.Image, n.Exposed})
	}
	want := []facts{{"SNIFFER", "linux", "tools:1", ""}, {"SR1", "sros", "sros:1", "10.96.1.1"}}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
}

// TestSharedPorts: the ports of the shared load balancer are those of the node's own
// containers.
func TestSharedPorts(t *testing.T) {
	p := readyPod("r1", "R1")
	p.Annotations[contract.AnnotationContainers] = `{"R1":["r1"],"R2":["r2"]}`
	port := func(name string, number int32, protocol corev1.Protocol) corev1.ContainerPort {
		return corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: protocol}
	}
	p.Spec.Containers = []corev1.Container{
		{Name: "r1", Ports: []corev1.ContainerPort{port("c9s-tcp-11000", 22, "TCP"), port("web", 80, "TCP"), port("c9s-udp-x", 1, "UDP")}},
		{Name: "r2", Ports: []corev1.ContainerPort{port("c9s-udp-11020", 161, "UDP")}},
	}
	balancer := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: contract.SharedService}}
	balancer.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}}
	got := Compute(Facts{
		Directory: contract.Directory{Nodes: []contract.DirectoryNode{{Name: "R1", Pod: "r1"}, {Name: "R2", Pod: "r1"}, {Name: "R3", Pod: "r3"}}},
		Pods:      []*corev1.Pod{p}, Services: []*corev1.Service{balancer},
	})
	for i, want := range []string{"192.0.2.9 [11000->22/tcp]", "192.0.2.9 [11020->161/udp]", " []"} {
		if text := fmt.Sprint(got.Nodes[i].Exposed, " ", got.Nodes[i].ExposedPorts); text != want {
			t.Errorf("%s: %s, want %s", got.Nodes[i].Name, text, want)
		}
	}
}

func TestReasonsOfTheSidecar(t *testing.T) {
	wiring := readyPod("r1", "R1")
	wiring.Status = corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{prepared, notStarted(running(WireContainer))}}
	booting := readyPod("r2", "R2")
	booting.Status.Conditions = nil
	got := Compute(Facts{
		Directory: contract.Directory{Nodes: []contract.DirectoryNode{{Name: "R1", Pod: "r1"}, {Name: "R2", Pod: "r2"}}},
		Pods:      []*corev1.Pod{wiring, booting},
		Sidecars:  map[string]Answer{"r1": {Status: api.Status{StartupReason: "waits for R2"}}, "r2": {Status: api.Status{ReadyReason: "R3 is not heard"}}},
	})
	for i, want := range []string{"waits for R2", "R3 is not heard"} {
		if got.Nodes[i].Reason != want {
			t.Errorf("%s: %q, want %q", got.Nodes[i].Name, got.Nodes[i].Reason, want)
		}
	}
}

func TestExposed(t *testing.T) {
	service := func(cluster string, in ...corev1.LoadBalancerIngress) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: cluster}, Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: in}}}
	}
	for _, c := range []struct {
		service *corev1.Service
		want    string
	}{
		{service("10.96.0.1"), "10.96.0.1"},
		{service("10.96.0.1", corev1.LoadBalancerIngress{IP: "192.0.2.1"}), "192.0.2.1"},
		{service("10.96.0.1", corev1.LoadBalancerIngress{}, corev1.LoadBalancerIngress{Hostname: "lb.example.net"}), "lb.example.net"},
		{service(corev1.ClusterIPNone), ""},
		{nil, ""},
	} {
		if got := exposed(c.service); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestVerdict(t *testing.T) {
	up, down, unknown := Link{State: LinkUp}, Link{State: LinkDown}, Link{State: LinkUnknown}
	for name, c := range map[string]struct {
		states []State
		links  []Link
		want   string
	}{
		"all ready":             {[]State{StateReady, StateReady}, []Link{up}, LabReady},
		"no node":               {nil, nil, LabReady},
		"a link down":           {[]State{StateReady, StateReady}, []Link{up, down}, LabDegraded},
		"a link unknown":        {[]State{StateReady, StateReady}, []Link{up, unknown}, LabDegraded},
		"a link degraded":       {[]State{StateReady, StateReady}, []Link{{State: LinkDegraded}}, LabDegraded},
		"a node degraded":       {[]State{StateReady, StateDegraded}, []Link{up}, LabDegraded},
		"a node boots":          {[]State{StateReady, StateBooting}, []Link{up}, LabDeploying},
		"a node is wired":       {[]State{StateBooting, StateWiring}, nil, LabDeploying},
		"an old Pod goes":       {[]State{StateReady, StateTerminating}, []Link{down}, LabDeploying},
		"a node failed":         {[]State{StateFailed, StatePending}, nil, LabFailed},
		"stopped":               {[]State{StateStopped, StateStopped}, []Link{down}, LabStopped},
		"one stopped, no link":  {[]State{StateReady, StateStopped}, nil, LabDegraded},
		"one stopped, one goes": {[]State{StateStopped, StateTerminating}, nil, LabDeploying},
	} {
		l := Lab{Links: c.links}
		for _, s := range c.states {
			l.Nodes = append(l.Nodes, Node{State: s})
		}
		if l.Settle(); l.State != c.want {
			t.Errorf("%s: %s, want %s", name, l.State, c.want)
		}
	}
}

func TestCommand(t *testing.T) {
	for want, c := range map[string]Command{
		`"hostname" succeeded`:                         {Step: 1, Command: "hostname", Output: "R1"},
		`step 2 is running`:                            {Step: 2, Running: true},
		`"sleep 99": still running after 1m0s`:         {Step: 1, Command: "sleep 99", Running: true, Error: "still running after 1m0s"},
		`"ls /x" failed with exit code 2: no such`:     {Step: 1, Command: "ls /x", ExitCode: 2, Error: "exit status 2", Output: "no such"},
		`"nothing" failed with exit code 127: no file`: {Step: 1, Command: "nothing", ExitCode: 127, Error: "no file"},
	} {
		if got := c.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestShort(t *testing.T) {
	long := strings.Repeat("é", 200)
	l := Lab{Nodes: []Node{{Commands: []Command{{Output: "fine"}, {ExitCode: 1, Output: long}, {ExitCode: 1, Output: "why"}}}}}
	got := l.Short().Nodes[0].Commands
	if got[0].Output != "" || got[1].Output != long[200:] || got[2].Output != "why" {
		t.Errorf("%+v", got)
	}
	if l.Nodes[0].Commands[0].Output != "fine" {
		t.Error("the status itself was changed")
	}
}
