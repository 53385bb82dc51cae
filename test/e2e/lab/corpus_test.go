package lab

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// corpusRuns are labs of others, run as they are except their images, and what
// their own commands must say, as their configurations promise it. before is done in
// the nodes whose name starts with "rt": what the lab's own start.sh does there,
// which the corpus omits.
var corpusRuns = []struct {
	topo   string
	before string
	checks []check
}{
	{"013-containerlab-frr01/frr01.clab.yml", "", []check{
		{"router1", "Full 2", ospfFull}, {"router2", "Full 2", ospfFull}, {"router3", "Full 2", ospfFull},
		{"PC1", reached, "ping -c 1 -W 1 192.168.12.2"},
		{"PC1", reached, "ping -c 1 -W 1 192.168.13.2"},
		{"PC2", reached, "ping -c 1 -W 1 192.168.13.2"},
	}},
	{"227-clab-bgp-frr-bgp-frr/bgp-frr.clab.yml", "", []check{
		{"leaf01", "Established 2", established}, {"leaf02", "Established 2", established}, {"leaf03", "Established 2", established},
		{"spine01", "Established 3", established}, {"spine02", "Established 3", established},
		{"host11", reached, "ping -c 1 -W 1 192.168.32.2"},
	}},
	{"147-containerlab-topol-bgp-mpath/bgp-mpath/topology.yml", startFRR, []check{
		{"rt1", "Established 3", established}, {"rt2", "Established 2", established}, {"rt4", "Established 2", established}, {"rt6", "Established 3", established},
		{"rt1", "paths 2", `echo paths $(vtysh -c 'show ip route 6.6.6.6/32' | grep -c '\* 10\.0\.')`},
		{"rt1", reached, "ping -c 1 -W 1 -I 1.1.1.1 6.6.6.6"},
	}},
	{"148-containerlab-topol-bgp/bgp/topology.yml", startFRR, []check{
		{"rt1", "Established 2", established}, {"rt2", "Established 2", established}, {"rt3", "Established 2", established}, {"rt4", "Established 2", established},
		{"rt3", "Full 1", ospfFull},
		{"rt1", reached, "ping -c 1 -W 1 -I 1.1.1.1 2.2.2.2"},
		{"rt1", reached, "ping -c 1 -W 1 -I 1.1.1.1 4.4.4.4"},
	}},
	{"150-containerlab-topol-is-is/is-is/topology.yml", startFRR, []check{
		{"rt1", "Up 2", isisUp}, {"rt2", "Up 4", isisUp}, {"rt4", "Up 4", isisUp}, {"rt6", "Up 2", isisUp},
		{"rt1", reached, "ping -c 1 -W 1 -I 1.1.1.1 6.6.6.6"},
	}},
	{"151-containerlab-topol-mpls-ldp/mpls-ldp/topology.yml", startFRR, []check{
		{"rt1", "Full 2", ospfFull}, {"rt6", "Full 2", ospfFull},
		{"rt2", "Full 4", ospfFull}, {"rt4", "Full 4", ospfFull},
		{"rt1", reached, "ping -c 1 -W 1 -I 1.1.1.1 6.6.6.6"},
	}},
	{"152-containerlab-topol-ospfv2-unnumbered/ospfv2-unnumbered/topology.yml", startFRR, []check{
		{"rt1", "Full 2", ospfFull}, {"rt2", "Full 4", ospfFull}, {"rt4", "Full 4", ospfFull}, {"rt6", "Full 2", ospfFull},
		{"rt1", reached, "ping -c 1 -W 1 -I 1.1.1.1 6.6.6.6"},
	}},
	{"155-containerlab-topol-ripng/ripng/topology.yml", startFRR, []check{
		{"rt1", "2001:db8::6/128", "vtysh -c 'show ipv6 route ripng'"}, {"rt6", "2001:db8::1/128", "vtysh -c 'show ipv6 route ripng'"},
		{"rt1", reached, "ping -6 -c 1 -W 1 -I 2001:db8::1 2001:db8::6"},
	}},
	{"254-qdisc-sandbox-qdisc-sandbox/topo.clab.yml", "", []check{
		{"hostA", reached, "ping -c 1 -W 1 172.16.0.2"}, {"hostB", reached, "ping -c 1 -W 1 172.16.0.2"}, {"hostA", reached, "ping -c 1 -W 1 192.168.0.102"},
	}},
	{"064-containerlab-24-bridge-in-ns/24-bridge-in-ns.clab.yaml", "", []check{
		{"c1", reached, "ping -c 1 -W 1 192.168.0.1"},
	}},
	{"088-containerlab-vxlan-stitch-linux/vxlan-stitch-linux.clab.yml", "", []check{
		{"l1", "10.0.0.1/24", "ip -4 addr show eth1"},
	}},
	{"054-containerlab-01-linux-nodes/01-linux-nodes.clab.yml", "", []check{
		{"l1", "MYVAR is SET", "echo $MYVAR; cat /tmp/var"}, {"l1", "172.20.20.99/", "ip -4 addr show eth0"}, {"l1", "mtu 2000", "ip link show eth1"},
		{"l1", reached, "ping -c 1 -W 1 l2.mydomain.com"}, {"l2", "search my.domain", "cat /etc/resolv.conf"},
	}},
	{"063-containerlab-24-basic-groups/24-basic-groups.clab.yaml", "", []check{
		{"l1", "MYVAR is SET", "echo $MYVAR"}, {"l2", reached, "ping -c 1 -W 1 172.20.20.99"},
	}},
	{"072-containerlab-node-filter/node-filter.clab.yml", "", []check{
		{"node1", "1 1 1", "echo $(cat /sys/class/net/eth1/carrier /sys/class/net/eth2/carrier /sys/class/net/eth3/carrier)"},
	}},
	{"074-containerlab-stages-race/stages-race.clab.yml", "", []check{
		{"l1", "state UP", "ip link show eth1"},
	}},
	{"075-containerlab-stages/stages.clab.yml", "", []check{
		{"node4", "started", "test -s /tmp/time && echo started"},
	}},
	{"069-containerlab-30-bridge-reconcile/30-bridge-reconcile.clab.yml", "", nil},
	{"087-containerlab-03-vxlan-tools/03-vxlan-tools.clab.yml", "", nil},
	{"160-containerlab-clos5/clos5.yml", "", nil},
	{"212-containerlab-topol-dci03/dci03.clab.yml", "", nil},
}

const (
	reached     = " 0% packet loss"
	ospfFull    = `echo Full $(vtysh -c 'show ip ospf neighbor' | grep -c Full)`
	established = `echo Established $(vtysh -c 'show bgp neighbors' | grep -c 'BGP state = Established')`
	isisUp      = `echo Up $(vtysh -c 'show isis neighbor' | grep Up | awk '{print $1, $2}' | sort -u | wc -l)`

	// startFRR sets the addresses of /etc/network/interfaces and loads FRR's
	// configuration, except LDP: zebra runs none where the kernel has no MPLS.
	startFRR = `awk '$1 == "iface" {i = $2} $1 == "address" {a = $2} $1 == "netmask" {print "addr replace", a "/" $2, "dev", i}' /etc/network/interfaces | ip -batch - &&
		sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 &&
		until vtysh -c 'show version' >/dev/null 2>&1; do sleep 1; done &&
		sed '/^mpls ldp/,/^!$/d' /etc/frr/frr.startup >/tmp/frr.conf && vtysh -f /tmp/frr.conf`
)

// check is a shell line in a node and what it must print.
type check struct{ node, want, line string }

// standIns are images that the test cluster has for theirs.
var standIns = []string{"sflow/clab-frr=quay.io/frrouting/frr:latest", "sflow/clab-iperf3=alpine:latest", "sflow/clab-sflow-rt=alpine:latest",
	"ghcr.io/holo-routing/holo-bundle=quay.io/frrouting/frr:latest"}

func TestCorpusRuns(t *testing.T) {
	long(t)
	corpus := filepath.Join(repo, "../shared/corpus")
	if _, err := os.Stat(corpus); errors.Is(err, fs.ErrNotExist) {
		t.Skip("no ../shared/corpus beside the checkout")
	}
	for _, run := range corpusRuns {
		t.Run(strings.SplitN(run.topo, "-", 2)[0], func(t *testing.T) {
			l := newLab(t, filepath.Join(corpus, run.topo), "corpus")
			args := []string{"--allow-missing"}
			for _, m := range standIns {
				args = append(args, "--map-image", m)
			}
			began := time.Now()
			l.deploy(t, args...)
			took := time.Since(began)
			l.name = "" // the only one in its namespace
			l.ready(t)
			if run.before != "" {
				for _, n := range l.status(t).Nodes {
					if !strings.HasPrefix(n.Name, "rt") {
						continue
					}
					if out, err := l.in(t.Context(), n.Name, "sh", "-c", run.before); err != nil {
						t.Fatalf("starting the routing of %s: %v\n%s", n.Name, err, out)
					}
				}
			}
			for _, c := range run.checks {
				l.eventually(t, c.node, c.want, "sh", "-c", c.line)
			}
			if strings.HasSuffix(run.topo, "/stages.clab.yml") {
				l.oneAfterTheOther(t, "node4", "node3", "node2", "node1")
			}
			s := l.status(t)
			t.Logf("%d nodes and %d links ready after %s, %d checks after %s", len(s.Nodes), len(s.Links), took.Round(100*time.Millisecond), len(run.checks), time.Since(began).Round(100*time.Millisecond))
		})
	}
}

// oneAfterTheOther compares the times that nodes wrote down at their start.
func (l *lab) oneAfterTheOther(t *testing.T, nodes ...string) {
	t.Helper()
	last := ""
	for _, n := range nodes {
		at, err := l.output(t, "exec", n, "-n", l.ns, "--", "cat", "/tmp/time")
		if err != nil {
			t.Fatal(err)
		}
		if string(at) <= last { // nanoseconds since 1970, all as long
			t.Errorf("%s started at %s, not after the one before it (%s)", n, at, last)
		}
		last = string(at)
	}
}
