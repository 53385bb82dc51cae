package cluster

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/c9s-lab/c9s/pkg/contract"
)

func testNodes() []Node {
	return []Node{
		{Name: "PE_1", Deployment: "pe-1", Containers: []string{"pe-1"}},
		{Name: "R1", Deployment: "r1", Containers: []string{"r1"}},
		{Name: "SR1", Deployment: "sr1", Containers: []string{"sr1-a", "sr1-1", "sr1-11"}},
		{Name: "Sniffer", Deployment: "r1", Containers: []string{"sniffer"}},
		{Name: "br1", Deployment: "br1"},
	}
}

func TestSelect(t *testing.T) {
	for name, c := range map[string]struct {
		names   []string
		want    string // nodes and their containers
		unknown string
	}{
		"as written":          {[]string{"PE_1"}, "PE_1:pe-1", ""},
		"as Kubernetes does":  {[]string{"pe-1"}, "PE_1:pe-1", ""},
		"several":             {[]string{"R1", "pe-1"}, "R1:r1 PE_1:pe-1", ""},
		"a group's primary":   {[]string{"r1"}, "R1:r1", ""},
		"a group's member":    {[]string{"Sniffer"}, "Sniffer:sniffer", ""},
		"a member, otherwise": {[]string{"sniffer"}, "Sniffer:sniffer", ""},
		"a chassis":           {[]string{"sr1"}, "SR1:sr1-a,sr1-1,sr1-11", ""},
		"a card":              {[]string{"SR1/1"}, "SR1:sr1-1", ""},
		"a card, otherwise":   {[]string{"sr1/A"}, "SR1:sr1-a", ""},
		"a network":           {[]string{"br1"}, "br1:", ""},
		"unknown":             {[]string{"R9", "R1", "r8"}, "", "no node R9, r8 in the lab; there are: PE_1, R1, SR1, Sniffer, br1"},
		"no such card":        {[]string{"SR1/7"}, "", "no node SR1/7"},
		"no chassis":          {[]string{"R1/A"}, "", "no node R1/A"},
		"part of a name":      {[]string{"R"}, "", "no node R "},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Select(testNodes(), c.names)
			if c.unknown != "" {
				if err == nil || !strings.Contains(err.Error(), c.unknown) {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			var text []string
			for _, n := range got {
				text = append(text, n.Name+":"+strings.Join(n.Containers, ","))
			}
			if err != nil || strings.Join(text, " ") != c.want {
				t.Errorf("got %v, %v; want %s", text, err, c.want)
			}
		})
	}
	if n := testNodes(); len(n[2].Containers) != 3 {
		t.Error("a card that was chosen changes its chassis")
	}
}

func TestNodesOf(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "r1", Annotations: map[string]string{
		contract.AnnotationNodeName: "R1,Sniffer", contract.AnnotationTopologyLabels: `{"R1":{"role":"leaf"}}`,
	}}}
	d.Spec.Template.Annotations = map[string]string{contract.AnnotationContainers: `{"R1":["r1"],"Sniffer":["sniffer"]}`}
	got := nodesOf(d)
	if len(got) != 2 || got[0].Name != "R1" || got[0].Labels["role"] != "leaf" || !slices.Equal(got[1].Containers, []string{"sniffer"}) || got[1].Deployment != "r1" {
		t.Errorf("got %+v", got)
	}
	if got := nodesOf(&appsv1.Deployment{}); len(got) != 0 {
		t.Errorf("a Deployment of somebody else: %+v", got)
	}
}

func TestChoose(t *testing.T) {
	one, two, twin := Found{Name: "dc", Namespace: "team-a"}, Found{Name: "wan", Namespace: "wan"}, Found{Name: "dc", Namespace: "team-b"}
	for name, c := range map[string]struct {
		labs            []Found
		name, namespace string
		want            Found
		err             string
		ofTopology      bool
	}{
		"the only one":                        {[]Found{one}, "", "", one, "", false},
		"by its name":                         {[]Found{one, two}, "dc", "", one, "", false},
		"by its namespace":                    {[]Found{one, two}, "team-a", "", one, "", false},
		"a name before a namespace":           {[]Found{{Name: "dc", Namespace: "wan"}, two}, "wan", "", two, "", false},
		"a topology's name is no namespace's": {[]Found{one, two}, "team-a", "", Found{}, "lab team-a is not in the cluster", true},
		"none":                                {nil, "", "", Found{}, "there is no lab in the cluster", false},
		"none in a namespace":                 {nil, "", "ns", Found{}, "there is no lab in namespace ns", false},
		"several":                             {[]Found{one, two}, "", "", Found{}, "several labs; name one, with -n if needed: dc in namespace team-a, wan in namespace wan", false},
		"the same name twice":                 {[]Found{one, twin, two}, "dc", "", Found{}, "there are several labs called dc; choose one with -n: dc in namespace team-a, dc in namespace team-b", false},
		"not there, no labs":                  {nil, "dc", "", Found{}, `lab "dc" is not in the cluster`, false},
		"not there, some labs":                {[]Found{two}, "dc", "ns", Found{}, "lab dc is not in namespace ns; there are: wan in namespace wan", false},
	} {
		got, err := Choose(c.labs, c.name, c.namespace, c.ofTopology)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestOwns(t *testing.T) {
	l := &Lab{Name: "dc", Namespace: "ns"}
	marks := func(by, lab string) map[string]string {
		return map[string]string{"app.kubernetes.io/managed-by": by, contract.LabelLab: lab}
	}
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		want                bool
	}{
		"all marks":           {marks("c9s", "dc"), map[string]string{contract.AnnotationLabName: "dc"}, true},
		"of another lab":      {marks("c9s", "wan"), map[string]string{contract.AnnotationLabName: "wan"}, false},
		"another lab's label": {marks("c9s", "wan"), map[string]string{contract.AnnotationLabName: "dc"}, false},
		"annotated, not c9s'": {marks("Helm", "dc"), map[string]string{contract.AnnotationLabName: "dc"}, false},
		"no annotation":       {marks("c9s", "dc"), nil, false},
		"by an old inventory": {nil, map[string]string{"config.k8s.io/owning-inventory": "c9s-0123456789abcdef"}, false},
		"nothing on it":       {nil, nil, false},
	} {
		if got := owns(l, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: c.labels, Annotations: c.annotations}}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestClash(t *testing.T) {
	l := &Lab{Name: "dc", Namespace: "ns"}
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "Service", "metadata": map[string]any{"name": "r1", "annotations": map[string]any{contract.AnnotationSource: "topo.clab.yml:7"}}}}
	for want, annotations := range map[string]map[string]string{
		`Service r1 (topo.clab.yml:7) already exists in namespace ns and was not created by c9s`: nil,
		`Service r1 (topo.clab.yml:7) already exists in namespace ns and belongs to lab "wan"`:   {contract.AnnotationLabName: "wan"},
	} {
		err := clash(l, u, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}})
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestUsable(t *testing.T) {
	ns := func(level string, phase corev1.NamespacePhase) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{podSecurity: level}}, Status: corev1.NamespaceStatus{Phase: phase}}
	}
	for name, c := range map[string]struct {
		existing Existing
		want     string
	}{
		"not there":         {Existing{}, ""},
		"its own":           {Existing{Lab: "dc", Namespace: ns("privileged", "")}, ""},
		"no level":          {Existing{Namespace: ns("", "")}, ""},
		"another lab's":     {Existing{Lab: "wan", Namespace: ns("privileged", "")}, `already contains the lab "wan"`},
		"no privileged Pod": {Existing{Namespace: ns("restricted", "")}, "forbids privileged Pods"},
		"going":             {Existing{Namespace: ns("privileged", corev1.NamespaceTerminating)}, "is being deleted"},
	} {
		err := c.existing.usable(&Lab{Name: "dc", Namespace: "ns"})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLabsOf(t *testing.T) {
	cm := func(name, lab, namespace string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Annotations: map[string]string{contract.AnnotationLabName: lab}}}
	}
	got := labsOf([]metav1.PartialObjectMetadata{
		cm(contract.AllocationsName(0), "dc", "a"), cm(contract.DirectoryConfigMap, "dc", "a"),
		cm(contract.DirectoryConfigMap, "wan", "b"), cm(contract.AllocationsName(0), "wan", "b"),
		cm(contract.AllocationsName(0), "kept", "c"), cm("c9s-status", "kept", "c"),
	})
	want := []Found{{Name: "dc", Namespace: "a"}, {Name: "kept", Namespace: "c", DataOnly: true}, {Name: "wan", Namespace: "b"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
