//go:build !nocluster

package cli

import (
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// localNames are the names by which this machine is to know a node: its own, then each of them
// with the lab's name. Whoever may deploy a lab chooses them, so those are left out that could
// take the place of a host outside the lab, as github.com.
func localNames(own []string, lab string) []string {
	var names, long []string
	for _, name := range own {
		if !contract.HostName(name) || strings.Contains(name, ".") || slices.Contains(names, name) {
			continue
		}
		if !realHost(name) {
			names = append(names, name)
		}
		if full := name + "." + lab; contract.HostName(lab) && !publicDomain(lab) && !slices.Contains(long, full) {
			long = append(long, full)
		}
	}
	return append(names, long...)
}

// realHost reports whether a name may be that of a host outside all labs.
func realHost(name string) bool {
	return strings.Contains(name, ".") || strings.EqualFold(name, "localhost")
}

// publicDomain reports whether names in a domain may be those of hosts outside all labs.
func publicDomain(domain string) bool {
	top := strings.ToLower(domain[strings.LastIndex(domain, ".")+1:])
	if top == "localhost" || top == "local" {
		return true
	}
	_, known := publicsuffix.PublicSuffix(top)
	return known
}
