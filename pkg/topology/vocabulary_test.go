package topology

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// containerlabKeys is the generic vocabulary of containerlab 0.79 to 0.81, written down from its
// reference: what the table and the decoder must both know.
const containerlabKeys = `
name prefix debug mgmt settings topology
mgmt.network mgmt.bridge mgmt.ipv4-subnet mgmt.ipv4-gw mgmt.ipv4-range mgmt.ipv6-subnet mgmt.ipv6-gw mgmt.ipv6-range
mgmt.mtu mgmt.external-access mgmt.skip-when-unused mgmt.driver-opts mgmt.ipv4_subnet mgmt.ipv6_subnet
mgmt.driver mgmt.macvlan-parent mgmt.macvlan-mode mgmt.macvlan-aux mgmt.ipam mgmt.ipam.provider mgmt.ipam.dad
mgmt.tailscale mgmt.tailscale.auth-key mgmt.tailscale.auth-mode
settings.certificate-authority settings.certificate-authority.cert settings.certificate-authority.key
settings.certificate-authority.key-size settings.certificate-authority.validity-duration
topology.defaults topology.kinds topology.groups topology.nodes topology.links
node.kind node.group node.type node.startup-config node.startup-delay node.enforce-startup-config
node.suppress-startup-config node.auto-remove node.restart-policy node.config node.config.vars node.image
node.image-pull-policy node.license node.position node.hostname node.entrypoint node.cmd node.exec node.binds
node.volumes node.devices node.cap-add node.privileged node.cgroupns-mode node.cgroup-parent node.pid-mode
node.tmpfs node.security-opts node.shm-size node.ports node.mgmt-ipv4 node.mgmt-ipv6 node.env node.env-files
node.user node.labels node.network-mode node.runtime node.cpu node.cpu-set node.memory node.sysctls node.extras
node.stages node.dns node.certificate node.healthcheck node.credentials node.username node.password node.aliases
node.components node.link-apply-mode node.mgmt-net
node.extras.srl-agents node.extras.mysocket-proxy node.extras.ceos-copy-to-flash node.extras.k8s_kind
node.extras.k8s_kind.deploy node.extras.k8s_kind.deploy.kubeconfig node.extras.k8s_kind.deploy.wait node.extras.frr node.extras.frr.daemons
node.dns.servers node.dns.options node.dns.search
node.certificate.issue node.certificate.key-size node.certificate.validity-duration node.certificate.sans
node.healthcheck.test node.healthcheck.interval node.healthcheck.timeout node.healthcheck.retries node.healthcheck.start-period
node.credentials.username node.credentials.password node.credentials.identity-file
node.components[].slot node.components[].type node.components[].env node.components[].sfm node.components[].xiom node.components[].mda
node.components[].cpu node.components[].ram node.components[].max-nics
node.components[].xiom[].slot node.components[].xiom[].type node.components[].xiom[].mda
node.components[].mda[].slot node.components[].mda[].type
node.stages.create node.stages.create-links node.stages.configure node.stages.healthy node.stages.exit
node.stages.STAGE.wait-for node.stages.STAGE.exec node.stages.STAGE.wait-for[].node node.stages.STAGE.wait-for[].stage
node.stages.STAGE.exec[].command node.stages.STAGE.exec[].target node.stages.STAGE.exec[].phase
link.type link.endpoints link.endpoint link.mtu link.labels link.vars link.ipv4 link.ipv6 link.host-interface link.mode
link.remote link.vni link.dst-port link.src-port link.udp-port link.parent-interface
link.endpoints[].node link.endpoints[].interface link.endpoints[].mac link.endpoints[].ipv4 link.endpoints[].ipv6 link.endpoints[].vars
`

func TestVocabularyIsComplete(t *testing.T) {
	want := strings.Fields(containerlabKeys)
	slices.Sort(want)
	if diff := cmp.Diff(want, Keys()); diff != "" {
		t.Errorf("the decoder's keys differ from containerlab's (-want +got):\n%s", diff)
	}
	var table []string
	for _, f := range Vocabulary() {
		table = append(table, f.Path)
		if f.Meaning == "" || f.Here == "" {
			t.Errorf("%s: the table says nothing about it", f.Path)
		}
		if !slices.Contains([]Treatment{Supported, Accepted, Refused}, f.Treatment) {
			t.Errorf("%s: treatment %q", f.Path, f.Treatment)
		}
	}
	slices.Sort(table)
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("the table's keys differ from containerlab's (-want +got):\n%s", diff)
	}
}

func TestLookup(t *testing.T) {
	tests := []struct {
		name, nearest string
		want          []string
	}{
		{"node.binds", "", []string{"node.binds"}},
		{"binds", "", []string{"node.binds"}},
		{"topology.nodes.r1.binds", "", []string{"node.binds"}},
		{"topology.defaults.env", "", []string{"node.env"}},
		{"nodes.r1.certificate.issue", "", []string{"node.certificate.issue"}},
		{"links.mtu", "", []string{"link.mtu"}},
		{"mtu", "", []string{"mgmt.mtu", "link.mtu"}},
		{"certificate.issue", "", []string{"node.certificate.issue"}},
		{"stages.create.wait-for", "", []string{"node.stages.STAGE.wait-for"}},
		{"topology.nodes.r1.stages.create.exec.command", "", []string{"node.stages.STAGE.exec[].command"}},
		{"components.mda.slot", "", []string{"node.components[].mda[].slot"}},
		{"topology.links.endpoints.mac", "", []string{"link.endpoints[].mac"}},
		{"bind", "binds", nil},
		{"xyzzyxyzzy", "", nil},
	}
	for _, tt := range tests {
		found, nearest := Lookup(tt.name)
		var got []string
		for _, f := range found {
			got = append(got, f.Path)
		}
		if !slices.Equal(got, tt.want) || nearest != tt.nearest {
			t.Errorf("Lookup(%q) = %v, %q, want %v, %q", tt.name, got, nearest, tt.want, tt.nearest)
		}
	}
}
