package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// defaultClass marks the StorageClass of claims that name none.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

func checkStorage(f Facts, n Needs) []Check {
	const name = "StorageClass"
	if n.Lab != "" && len(n.Claims) == 0 {
		return nil
	}
	if f.StorageClassesErr != nil {
		return unread(name, f.StorageClassesErr)
	}
	classes := map[string]bool{}
	standard := ""
	for _, s := range f.StorageClasses {
		classes[s.Name] = true
		if isDefault(s) {
			standard = s.Name
		}
	}
	var missing []string
	wantDefault := false
	for _, claim := range n.Claims {
		switch {
		case claim.Class == nil:
			wantDefault = true
		case *claim.Class != "" && !classes[*claim.Class] && !slices.Contains(missing, *claim.Class):
			missing = append(missing, *claim.Class)
		}
	}
	var out []Check
	if len(missing) > 0 {
		out = append(out, Check{Name: name, Result: Problem, Found: "it does not exist: " + strings.Join(missing, ", "), Remedy: "create it, or name another one in the policy file (kubectl get storageclass)"})
	}
	switch {
	case n.Lab == "" && standard == "":
		out = append(out, Check{Name: name, Result: Warning, Found: "there is no default: labs with persistence must name one", Remedy: "mark one with the annotation " + defaultClass + "=true"})
	case standard == "" && wantDefault:
		out = append(out, Check{Name: name, Result: Problem, Found: fmt.Sprintf("there is no default, and %s", diag.Count(len(n.Claims), "claim")+" of the lab would wait forever"),
			Remedy: "mark one with the annotation " + defaultClass + "=true, or name one in the policy file"})
	case len(out) == 0:
		found := "those that the lab names exist"
		if standard != "" {
			found = standard + " is the default"
		}
		out = append(out, Check{Name: name, Result: OK, Found: found})
	}
	return out
}

func isDefault(s storagev1.StorageClass) bool {
	return s.Annotations[defaultClass] == "true" || s.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true"
}

// balancers are API groups of what gives Services their addresses.
var balancers = map[string]string{"metallb.io": "MetalLB", "cilium.io": "Cilium", "kube-vip.io": "kube-vip", "purelb.io": "PureLB", "network.openelb.kubesphere.io": "OpenELB"}

// clouds are the prefixes of workers' provider IDs whose cloud has load balancers.
var clouds = map[string]string{"aws:": "AWS", "gce:": "Google Cloud", "azure:": "Azure", "openstack:": "OpenStack", "digitalocean:": "DigitalOcean", "hcloud:": "Hetzner", "linode:": "Linode", "ocid1.": "Oracle Cloud", "ibm:": "IBM Cloud", "scaleway:": "Scaleway", "k3s:": "k3s"}

func checkLoadBalancer(f Facts, n Needs) []Check {
	const name = "load balancer"
	if n.Lab != "" && len(n.Balanced) == 0 {
		return nil
	}
	served, waiting := 0, 0
	for _, s := range f.Balanced {
		if len(s.Status.LoadBalancer.Ingress) > 0 {
			served++
		} else {
			waiting++
		}
	}
	who := balancer(f)
	switch {
	case served > 0:
		return []Check{{Name: name, Result: OK, Found: diag.Count(served, "Service") + " of the cluster have an address"}}
	case who != "" && waiting == 0:
		return []Check{{Name: name, Result: OK, Found: "one seems to be installed: " + who}}
	case n.Lab == "":
		return nil // most labs need none
	case f.BalancedErr != nil && who == "":
		return unread(name, f.BalancedErr)
	}
	c := Check{Name: name, Result: Warning, Found: "none was found; these Services would have no address: " + few(n.Balanced),
		Remedy: "install one (MetalLB, kube-vip), or expose by NodePort or ClusterIP in the policy file"}
	if waiting > 0 {
		c.Found = diag.Count(waiting, "Service") + " of the cluster wait for an address; so would: " + few(n.Balanced)
	}
	return []Check{c}
}

func balancer(f Facts) string {
	for _, group := range f.Groups {
		if name := balancers[group]; name != "" {
			return name
		}
	}
	for i := range f.Workers {
		for prefix, name := range clouds {
			if strings.HasPrefix(f.Workers[i].Spec.ProviderID, prefix) {
				return name
			}
		}
	}
	return ""
}

func checkDNS(f Facts, _ Needs) []Check {
	const name = "DNS"
	if f.DNS.Err != nil {
		return unread(name, f.DNS.Err)
	}
	const remedy = "install CoreDNS, or find out why its Pods are not ready (kubectl -n kube-system get pods -l k8s-app=kube-dns): Pods find each other through DNS"
	if len(f.DNS.Services) == 0 {
		return []Check{{Name: name, Result: Problem, Found: "there is no Service with the label k8s-app=kube-dns in kube-system", Remedy: remedy}}
	}
	ready := 0
	for _, s := range f.DNS.Slices {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready++
			}
		}
	}
	s := f.DNS.Services[0]
	if ready == 0 {
		return []Check{{Name: name, Result: Problem, Found: "Service " + s.Name + " has no ready Pod", Remedy: remedy}}
	}
	where := s.Spec.ClusterIP
	if where == corev1.ClusterIPNone {
		where = "headless"
	}
	return []Check{{Name: name, Result: OK, Found: fmt.Sprintf("%s (%s), %s ready", s.Name, where, diag.Count(ready, "Pod"))}}
}
