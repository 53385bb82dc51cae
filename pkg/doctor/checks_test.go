package doctor

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/probe"
)

// A cluster in which nothing is amiss has no problem and no warning, for any lab
// and for one.
func TestGoodCluster(t *testing.T) {
	for _, n := range []Needs{Any(), lab(pod("R1", "100m", "128Mi"))} {
		for _, c := range Examine(good(), n) {
			if c.Result != OK {
				t.Errorf("%q: %+v", n.Lab, c)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	for _, c := range []struct {
		version string
		kept    bool
		want    expect
	}{
		{"v1.33.1", true, expect{"API server", OK, "1.33.1, with sidecar containers"}},
		{"v1.29.0-eks-abc", true, expect{"API server", OK, "with sidecar containers"}},
		{"v1.31.2+k3s1", true, expect{"API server", OK, ""}},
		{"v1.28.4", true, expect{"API server", OK, "by feature gate"}},
		{"v1.28.4", false, expect{"API server", Problem, "without sidecar containers"}},
		{"v1.27.0", false, expect{"API server", Problem, "has no sidecar containers"}},
		{"next", false, expect{"API server", Warning, `"next"`}},
	} {
		f := good()
		f.Server.GitVersion, f.Admission.Sidecars = c.version, c.kept
		t.Run(c.version, func(t *testing.T) { demand(t, checkVersion(f, Any()), []expect{c.want}) })
	}
}

func TestNamespace(t *testing.T) {
	ns := func(change func(*corev1.Namespace)) *corev1.Namespace {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo", Labels: map[string]string{}, Annotations: map[string]string{}}}
		change(n)
		return n
	}
	for name, c := range map[string]struct {
		ns   *corev1.Namespace
		err  error
		want expect
	}{
		"absent":     {nil, nil, expect{"namespace", OK, "deploy creates it"}},
		"forbidden":  {nil, errForbidden, expect{"namespace", Warning, "cannot be read"}},
		"baseline":   {ns(func(n *corev1.Namespace) { n.Labels[podSecurity] = "baseline" }), nil, expect{"namespace", Problem, "enforce=baseline"}},
		"privileged": {ns(func(n *corev1.Namespace) { n.Labels[podSecurity] = "privileged" }), nil, expect{"namespace", OK, "allows privileged Pods"}},
		"going":      {ns(func(n *corev1.Namespace) { n.Status.Phase = corev1.NamespaceTerminating }), nil, expect{"namespace", Problem, "being deleted"}},
		"another's":  {ns(func(n *corev1.Namespace) { n.Annotations[contract.AnnotationLabName] = "other" }), nil, expect{"namespace", Problem, `lab "other"`}},
		"own":        {ns(func(n *corev1.Namespace) { n.Annotations[contract.AnnotationLabName] = "demo" }), nil, expect{"namespace", OK, ""}},
	} {
		f := good()
		f.Namespace, f.NamespaceErr = c.ns, c.err
		t.Run(name, func(t *testing.T) { demand(t, checkNamespace(f, lab()), []expect{c.want}) })
	}
}

func TestAdmission(t *testing.T) {
	for name, c := range map[string]struct {
		where, err string
		want       expect
	}{
		"admitted":                {"demo", "", expect{"privileged Pods", OK, "admits them"}},
		"pod security":            {"demo", `pods "x" is forbidden: violates PodSecurity "baseline:latest": privileged`, expect{"privileged Pods", Problem, "violates PodSecurity"}},
		"pod security, elsewhere": {"default", `pods "x" is forbidden: violates PodSecurity "baseline:latest": privileged`, expect{"privileged Pods", OK, "deploy creates its namespace"}},
		"OpenShift":               {"demo", `pods is forbidden: unable to validate against any security context constraint`, expect{"privileged Pods", Problem, "security context constraint"}},
		"quota of limits":         {"demo", `failed quota: q: must specify limits.cpu for: wire`, expect{"privileged Pods", Problem, "must specify"}},
		"quota":                   {"demo", `exceeded quota: small`, expect{"privileged Pods", Problem, "exceeded quota"}},
		"webhook":                 {"demo", `admission webhook "validate.kyverno.svc" denied the request`, expect{"privileged Pods", Problem, "kyverno"}},
		"webhook, elsewhere":      {"default", `admission webhook "validate.kyverno.svc" denied the request`, expect{"privileged Pods", Warning, "in namespace default"}},
		"no right":                {"demo", `pods is forbidden: User "u" cannot create resource "pods"`, expect{"privileged Pods", Warning, "cannot create"}},
	} {
		f := good()
		f.Admission = Admission{Namespace: c.where}
		if c.err != "" {
			f.Admission.Err = errors.New(c.err)
		}
		t.Run(name, func(t *testing.T) { demand(t, checkAdmission(f, Any()), []expect{c.want}) })
	}
}

func TestStorage(t *testing.T) {
	fast, none := "fast", "none"
	without := func(f *Facts) {
		f.StorageClasses = []storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}}
	}
	for name, c := range map[string]struct {
		lab    string
		claims []Claim
		change func(*Facts)
		want   []expect
	}{
		"lab without claims":  {"demo", nil, without, nil},
		"default":             {"demo", []Claim{{"r1-data", nil}}, nil, []expect{{"StorageClass", OK, "fast is the default"}}},
		"no default":          {"demo", []Claim{{"r1-data", nil}}, without, []expect{{"StorageClass", Problem, "no default, and 1 claim"}}},
		"named":               {"demo", []Claim{{"r1-data", &fast}}, without, []expect{{"StorageClass", OK, "exist"}}},
		"named, not there":    {"demo", []Claim{{"r1-data", &none}, {"r2-data", &none}}, nil, []expect{{"StorageClass", Problem, "does not exist: none"}}},
		"any lab":             {"", nil, nil, []expect{{"StorageClass", OK, "fast"}}},
		"any lab, no default": {"", nil, without, []expect{{"StorageClass", Warning, "no default"}}},
		"forbidden":           {"", nil, func(f *Facts) { f.StorageClassesErr = errForbidden }, []expect{{"StorageClass", Warning, "cannot be read"}}},
		"beta's default class": {"", nil, func(f *Facts) {
			f.StorageClasses[0].Annotations = map[string]string{"storageclass.beta.kubernetes.io/is-default-class": "true"}
		}, []expect{{"StorageClass", OK, "fast"}}},
	} {
		f, n := good(), Any()
		n.Lab, n.Claims = c.lab, c.claims
		if c.change != nil {
			c.change(&f)
		}
		t.Run(name, func(t *testing.T) { demand(t, checkStorage(f, n), c.want) })
	}
}

func TestLoadBalancer(t *testing.T) {
	service := func(addresses ...string) corev1.Service {
		var s corev1.Service
		for _, a := range addresses {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a})
		}
		return s
	}
	for name, c := range map[string]struct {
		balanced []string
		change   func(*Facts)
		want     []expect
	}{
		"not wanted":    {nil, nil, nil},
		"one serves":    {[]string{"R1"}, func(f *Facts) { f.Balanced = []corev1.Service{service("192.0.2.1"), service()} }, []expect{{"load balancer", OK, "1 Service"}}},
		"MetalLB":       {[]string{"R1"}, func(f *Facts) { f.Groups = []string{"apps", "metallb.io"} }, []expect{{"load balancer", OK, "MetalLB"}}},
		"a cloud":       {[]string{"R1"}, func(f *Facts) { f.Workers[0].Spec.ProviderID = "aws:///eu-west-1a/i-1" }, []expect{{"load balancer", OK, "AWS"}}},
		"waits in vain": {[]string{"R1"}, func(f *Facts) { f.Balanced = []corev1.Service{service()} }, []expect{{"load balancer", Warning, "1 Service of the cluster wait"}}},
		"no sign":       {[]string{"R1", "R2"}, nil, []expect{{"load balancer", Warning, "R1, R2"}}},
		"forbidden":     {[]string{"R1"}, func(f *Facts) { f.BalancedErr = errForbidden }, []expect{{"load balancer", Warning, "cannot be read"}}},
	} {
		f, n := good(), lab()
		n.Balanced = c.balanced
		if c.change != nil {
			c.change(&f)
		}
		t.Run(name, func(t *testing.T) { demand(t, checkLoadBalancer(f, n), c.want) })
	}
}

func TestDNS(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		change func(*Facts)
		want   expect
	}{
		"ready":      {func(*Facts) {}, expect{"DNS", OK, "kube-dns (10.96.0.10), 1 Pod ready"}},
		"no Service": {func(f *Facts) { f.DNS = DNS{} }, expect{"DNS", Problem, "no Service"}},
		"not ready": {func(f *Facts) {
			f.DNS.Slices = []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &no}}}}}
		}, expect{"DNS", Problem, "no ready Pod"}},
		"forbidden": {func(f *Facts) { f.DNS.Err = errForbidden }, expect{"DNS", Warning, "cannot be read"}},
	} {
		f := good()
		c.change(&f)
		t.Run(name, func(t *testing.T) { demand(t, checkDNS(f, Any()), []expect{c.want}) })
	}
}

func TestKernel(t *testing.T) {
	macvlan := lab(pod("R1", "1m", "1Mi"))
	macvlan.Features = map[probe.Feature][]string{probe.Macvlan: {"R1"}}
	for name, c := range map[string]struct {
		needs  Needs
		probes map[string]Probe
		want   []expect
	}{
		"not asked":           {Any(), nil, nil},
		"all":                 {Any(), map[string]Probe{"n1": answers(1500), "n2": answers(1500)}, []expect{{"kernel", OK, "2 workers"}}},
		"required":            {Any(), map[string]Probe{"n1": answers(1500, probe.VXLAN), "n2": answers(1500, probe.VXLAN)}, []expect{{"kernel: vxlan", Problem, "missing on n1, n2 (operation not supported)"}}},
		"optional":            {macvlan, map[string]Probe{"n1": answers(1500, probe.Redirect)}, []expect{{"kernel: tc u32 mirred", Warning, "only udp"}}},
		"needed by a link":    {macvlan, map[string]Probe{"n1": answers(1500, probe.Macvlan)}, []expect{{"kernel: macvlan", Problem, "needed by R1"}}},
		"needed by no link":   {lab(), map[string]Probe{"n1": answers(1500, probe.Macvlan)}, []expect{{"kernel: macvlan", Warning, "missing on n1"}}},
		"no answer":           {Any(), map[string]Probe{"n1": {Err: errors.New("its image cannot be pulled")}}, nil},
		"an older probe's":    {Any(), map[string]Probe{"n1": {Report: probe.Report{Version: probe.Version}}}, []expect{{"kernel", OK, ""}}},
		"one of several ones": {Any(), map[string]Probe{"n1": answers(1500, probe.NAT), "n2": answers(1500)}, []expect{{"kernel: nftables inet nat", Problem, "missing on n1 "}}},
	} {
		f := good()
		f.Probes = c.probes
		t.Run(name, func(t *testing.T) { demand(t, checkKernel(f, c.needs), c.want) })
	}
	f := good()
	f.Probes = map[string]Probe{"n1": {Err: errors.New("its image cannot be pulled")}, "n2": answers(1500)}
	demand(t, checkProbes(f, Any()), []expect{{"probe on n1", Warning, "cannot be pulled"}})
}

func TestMTU(t *testing.T) {
	deaf := answers(1450)
	deaf.Report.DNS = "i/o timeout"
	for name, c := range map[string]struct {
		probes map[string]Probe
		want   []expect
	}{
		"none":      {nil, nil},
		"same":      {map[string]Probe{"n1": answers(1450), "n2": answers(1450)}, []expect{{"Pod MTU", OK, "1450"}}},
		"different": {map[string]Probe{"n1": answers(1450), "n2": answers(8950)}, []expect{{"Pod MTU", Warning, "1450 on n1, 8950 on n2"}}},
		"small":     {map[string]Probe{"n1": answers(1200)}, []expect{{"Pod MTU", Warning, "less than IPv6 requires"}}},
		"no DNS":    {map[string]Probe{"n1": deaf}, []expect{{"DNS in Pods", Problem, "i/o timeout"}, {"Pod MTU", OK, "1450"}}},
	} {
		f := good()
		f.Probes = c.probes
		t.Run(name, func(t *testing.T) { demand(t, checkMTU(f, Any()), c.want) })
	}
}

// On OpenShift a user's dry-run does not show what the lab's ServiceAccount may.
func TestCheckAdmissionOnOpenShift(t *testing.T) {
	f := good()
	f.Groups = append(f.Groups, "security.openshift.io")
	got := checkAdmission(f, Any())
	demand(t, got, []expect{{"privileged Pods", Warning, "the lab's ServiceAccount"}})
	if got[0].Remedy != letServiceAccount {
		t.Errorf("remedy %q", got[0].Remedy)
	}
}
