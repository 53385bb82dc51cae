package site

import (
	"net/netip"
	"testing"
)

// Two clusters share no address, nor do the nodes of one.
func TestAddressesDoNotOverlap(t *testing.T) {
	var seen []netip.Prefix
	for index := range maxClusters {
		c := Cluster{Name: "c", Index: index, Workers: MaxWorkers, MTU: 1500, IPv6: true}
		for _, node := range c.AllWorkers() {
			for _, pods := range node.PodSubnets() {
				if !within(pods, c.PodSubnets()) {
					t.Errorf("cluster %d, %s: Pods in %s, outside %v", index, node.Name(), pods, c.PodSubnets())
				}
				if pods.Addr().Is4() {
					seen = append(seen, pods)
				}
			}
			for _, address := range node.Addresses() {
				if !within(address, c.UnderlaySubnets()) {
					t.Errorf("cluster %d, %s: address %s, outside %v", index, node.Name(), address, c.UnderlaySubnets())
				}
			}
		}
		seen = append(seen, c.UnderlaySubnets()...)
	}
	unique := map[netip.Prefix]bool{}
	for _, p := range seen {
		if unique[p] {
			t.Errorf("%s is used twice", p)
		}
		unique[p] = true
	}
}

func within(p netip.Prefix, ranges []netip.Prefix) bool {
	for _, r := range ranges {
		if r.Contains(p.Addr()) {
			return true
		}
	}
	return false
}

func TestValidate(t *testing.T) {
	good := Cluster{Name: "c9s", Workers: 3, MTU: 1500}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Cluster){
		"long name":        func(c *Cluster) { c.Name = "twelve-chars" },
		"path as a name":   func(c *Cluster) { c.Name = "../etc" },
		"no name":          func(c *Cluster) { c.Name = "" },
		"no worker":        func(c *Cluster) { c.Workers = 0 },
		"too many workers": func(c *Cluster) { c.Workers = MaxWorkers + 1 },
		"small MTU":        func(c *Cluster) { c.MTU = 576 },
	} {
		bad := good
		change(&bad)
		if bad.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
