package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// TestLabService: all Pods of a lab have their name in one headless Service.
func TestLabService(t *testing.T) {
	l := newTestLab("names")
	l.node("R1", "linux")
	l.node("r2", "linux")
	l.join("r2", "R1")
	l.node("r3", "linux")
	var services []*corev1.Service
	for _, o := range l.mustRender(t).Objects {
		if s, ok := o.Object.(*corev1.Service); ok {
			services = append(services, s)
		}
	}
	if len(services) != 1 || services[0].Name != contract.LabService || services[0].Spec.ClusterIP != corev1.ClusterIPNone || !services[0].Spec.PublishNotReadyAddresses {
		t.Fatalf("Services: %v", services)
	}
	for _, pod := range []string{"r1", "r3"} {
		template := deploymentOf(t, l, pod).Spec.Template
		if host := template.Spec.Hostname + "." + template.Spec.Subdomain; host != contract.PodHost(pod) {
			t.Errorf("Pod %s is called %s, and its peers ask for %s", pod, host, contract.PodHost(pod))
		}
		for key, value := range services[0].Spec.Selector {
			if template.Labels[key] != value {
				t.Errorf("the Service does not select Pod %s: %s is %q", pod, key, template.Labels[key])
			}
		}
	}
}

// TestExpose: a node has a Service where the policy or ports of the topology ask for one.
func TestExpose(t *testing.T) {
	ssh := []lab.Port{{Container: 22, Protocol: "TCP"}}
	for name, c := range map[string]struct {
		expose *lab.Expose
		ports  []lab.Port
		want   string
	}{
		"nobody asks":           {nil, nil, ""},
		"topology":              {nil, ssh, "ClusterIP tcp-22"},
		"policy":                {&lab.Expose{}, nil, "ClusterIP tcp-22 tcp-23 tcp-80 tcp-443 tcp-830 tcp-5000 tcp-5900 tcp-6030 tcp-8080 tcp-8765 tcp-9339 tcp-9340 tcp-9559 tcp-32767 tcp-50051 tcp-57400 udp-161"},
		"none":                  {&lab.Expose{Type: "None"}, ssh, ""},
		"no ports":              {&lab.Expose{Type: "LoadBalancer", Ports: []lab.Port{}}, nil, ""},
		"no ports but topology": {&lab.Expose{Type: "NodePort", Ports: []lab.Port{}}, ssh, "NodePort tcp-22"},
		"some ports":            {&lab.Expose{Type: "LoadBalancer", Ports: []lab.Port{{Container: 161, Protocol: "UDP"}}}, ssh, "LoadBalancer tcp-22 udp-161"},
	} {
		l := newTestLab("expose")
		n, _ := l.node("r1", "linux")
		n.Policy.Expose, n.Ports, n.Aliases = c.expose, c.ports, []string{"www"}
		got, alias := "", false
		for _, o := range l.mustRender(t).Objects {
			s, ok := o.Object.(*corev1.Service)
			switch {
			case ok && s.Name == "www":
				alias = true
			case ok && s.Name == "r1":
				got = string(s.Spec.Type)
				for _, p := range s.Spec.Ports {
					got += " " + p.Name
				}
			}
		}
		if got != c.want || alias != (c.want != "") {
			t.Errorf("%s: %q, want %q; alias: %v", name, got, c.want, alias)
		}
	}
}

// TestObjectsOfANode: a node without persistence, certificates and ports has three objects,
// with small files or without, and large files are in the lab once.
func TestObjectsOfANode(t *testing.T) {
	l := newTestLab("few")
	image := bytes.Repeat([]byte("0123456789abcde\n"), 20_000)
	for i := range 5 {
		_, p := l.node(fmt.Sprintf("r%d", i), "linux")
		p.Steps = []plan.Step{{User: true, Run: &plan.RunStep{Argv: []string{"hostname"}}}}
		p.Files = []plan.File{{Path: "config", Mode: 0o644, Content: fmt.Appendf(nil, "node %d\n", i)}}
		if i > 1 {
			p.Files = append(p.Files, plan.File{Path: "image", Mode: 0o644, Ref: l.file(image, false)})
		}
	}
	objects, shared := map[string][]string{}, 0
	for _, o := range l.mustRender(t).Objects {
		switch {
		case strings.HasPrefix(o.Group, "files/"):
			shared++
		case strings.HasPrefix(o.Group, "nodes/"):
			objects[o.Group] = append(objects[o.Group], o.Kind())
		}
	}
	for group, kinds := range objects {
		if len(kinds) != 3 {
			t.Errorf("%s has %v", group, kinds)
		}
	}
	if len(objects) != 5 || shared != 2 { // 320,000 bytes are two pieces
		t.Errorf("%d nodes, %d ConfigMaps of the large file", len(objects), shared)
	}
	// One node more with the file changes no other node.
	before := map[string][]byte{}
	for _, o := range l.mustRender(t).Objects {
		if strings.HasPrefix(o.Group, "nodes/") || strings.HasPrefix(o.Group, "files/") {
			before[o.Kind()+o.Object.(apiObject).GetName()], _ = o.JSON()
		}
	}
	_, p := l.node("r9", "linux")
	p.Files = []plan.File{{Path: "other", Mode: 0o600, Ref: l.file(image, false)}}
	for _, o := range l.mustRender(t).Objects {
		name := o.Kind() + o.Object.(apiObject).GetName()
		if data, _ := o.JSON(); before[name] != nil && !bytes.Equal(data, before[name]) {
			t.Errorf("a new node changes %s", name)
		}
	}
}
