package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// shareNode adds a node behind the shared load balancer, from its first port on.
func (l *testLab) shareNode(name string, first uint16, ports ...lab.Port) *lab.Node {
	n, _ := l.node(name, "linux")
	n.Policy.Expose = &lab.Expose{Type: "LoadBalancer", Shared: true, Ports: ports}
	n.SharedPort = first
	return n
}

// TestSharedService: nodes whose policy shares the load balancer are behind one Service, each
// port of it leads to one Pod, and they have no Service of their own.
func TestSharedService(t *testing.T) {
	ssh, web, snmp := lab.Port{Container: 22, Protocol: "TCP"}, lab.Port{Container: 80, Protocol: "TCP"}, lab.Port{Container: 161, Protocol: "UDP"}
	l := newTestLab("shared")
	l.shareNode("r1", 11000, ssh, snmp)
	l.shareNode("r2", 11040, web, ssh).Aliases = []string{"www"}
	l.node("r3", "linux")
	own, _ := l.node("r4", "linux")
	own.Policy.Expose = &lab.Expose{Type: "LoadBalancer", Ports: []lab.Port{ssh}}
	out := l.mustRender(t)
	services := map[string]*corev1.Service{}
	for _, o := range out.Objects {
		if s, ok := o.Object.(*corev1.Service); ok {
			services[s.Name] = s
		}
	}
	shared := services[contract.SharedService]
	if len(services) != 3 || shared == nil || services[contract.LabService] == nil || services["r4"] == nil {
		t.Fatalf("Services: %v", services)
	}
	// Where a port leads to, found as Kubernetes finds it: in the Pods that the Service
	// selects, by the name of the port.
	leads := map[string]string{}
	for _, pod := range []string{"r1", "r2", "r3", "r4"} {
		template := deploymentOf(t, l, pod).Spec.Template
		for key, value := range shared.Spec.Selector {
			if template.Labels[key] != value {
				t.Errorf("the Service does not select %s", pod)
			}
		}
		for _, c := range template.Spec.Containers {
			for _, p := range c.Ports {
				for _, s := range shared.Spec.Ports {
					if s.TargetPort.StrVal == p.Name && s.Protocol == p.Protocol {
						leads[fmt.Sprintf("%d/%s", s.Port, s.Protocol)] += fmt.Sprintf("%s:%d", pod, p.ContainerPort)
					}
				}
			}
		}
	}
	for port, want := range map[string]string{"11000/TCP": "r1:22", "11000/UDP": "r1:161", "11040/TCP": "r2:22", "11041/TCP": "r2:80"} {
		if leads[port] != want {
			t.Errorf("port %s leads to %q, want %s", port, leads[port], want)
		}
	}
	if len(leads) != 4 || len(shared.Spec.Ports) != 4 || shared.Spec.Type != corev1.ServiceTypeLoadBalancer {
		t.Errorf("%v, %+v", leads, shared.Spec)
	}
}

// TestSharedServiceRejects: a node that does not fit is an error.
func TestSharedServiceRejects(t *testing.T) {
	many := make([]lab.Port, lab.SharedPorts+1)
	for i := range many {
		many[i] = lab.Port{Container: uint16(1000 + i), Protocol: "TCP"}
	}
	for name, change := range map[string]func(l *testLab){
		"too many ports": func(l *testLab) { l.shareNode("r1", 11000, many...) },
		"host network": func(l *testLab) {
			l.shareNode("r1", 11000, lab.Port{Container: 22, Protocol: "TCP"}).NetworkMode = lab.NetworkHost
		},
	} {
		l := newTestLab("shared")
		change(l)
		_, diags := l.render(t)
		if !slices.ContainsFunc(diags, func(d diag.Diagnostic) bool { return d.Code == CodeExposeShared && d.Severity == diag.Error }) {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

// TestManyExposed: what many Services cost is a warning, once, and it names the shared load
// balancer, which has none until its ports are too many.
func TestManyExposed(t *testing.T) {
	for name, c := range map[string]struct {
		expose lab.Expose
		nodes  int
		warns  string
	}{
		"50 load balancers":    {lab.Expose{Type: "LoadBalancer"}, 50, ""},
		"51 load balancers":    {lab.Expose{Type: "LoadBalancer"}, 51, "51 nodes have a load balancer each"},
		"50 with node ports":   {lab.Expose{Type: "NodePort"}, 50, ""},
		"51 with node ports":   {lab.Expose{Type: "NodePort"}, 51, "51 nodes take 867 node ports"},
		"51 of type ClusterIP": {lab.Expose{Type: "ClusterIP"}, 51, ""},
		"51 share one":         {lab.Expose{Type: "LoadBalancer", Shared: true}, 51, ""},
		"170 share one":        {lab.Expose{Type: "LoadBalancer", Shared: true}, 170, "the shared load balancer has 2890 ports"},
	} {
		l := newTestLab("many")
		for i := range c.nodes {
			n, _ := l.node(fmt.Sprintf("r%d", i), "linux")
			n.Policy.Expose = &c.expose
			if c.expose.Shared {
				n.SharedPort = uint16(lab.FirstSharedPort + i*lab.SharedPorts)
			}
		}
		_, diags := l.render(t)
		switch {
		case c.warns == "" && len(diags) > 0:
			t.Errorf("%s: %v", name, diags)
		case c.warns != "" && (len(diags) != 1 || diags[0].Code != CodeExposeMany || diags[0].Severity != diag.Warning || !strings.Contains(diags[0].Message, c.warns)):
			t.Errorf("%s: %v", name, diags)
		case c.warns != "" && !c.expose.Shared && !strings.Contains(diags[0].Hint, "shared: true"):
			t.Errorf("%s: the hint is %q", name, diags[0].Hint)
		}
	}
}
