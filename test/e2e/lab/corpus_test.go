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

// corpusRuns are labs of others, run as they are but for their images, and what
// their own commands must say. Labs without commands show that they start, with
// every link up.
var corpusRuns = []struct {
	topo   string
	checks []check
}{
	{"013-containerlab-frr01/frr01.clab.yml", []check{
		{"router1", "Full 2", `echo Full $(vtysh -c 'show ip ospf neighbor' | grep -c Full)`},
		{"PC1", " 0% packet loss", "ping -c 1 -W 1 192.168.13.2 || ping -c 1 -W 1 PC3"},
	}},
	{"227-clab-bgp-frr-bgp-frr/bgp-frr.clab.yml", []check{
		{"leaf01", "Established 2", established},
		{"spine01", "Established 3", established},
		{"host11", " 0% packet loss", "ping -c 1 -W 1 192.168.32.2"},
	}},
	{"254-qdisc-sandbox-qdisc-sandbox/topo.clab.yml", nil},
	{"064-containerlab-24-bridge-in-ns/24-bridge-in-ns.clab.yaml", nil},
	{"069-containerlab-30-bridge-reconcile/30-bridge-reconcile.clab.yml", nil},
	{"087-containerlab-03-vxlan-tools/03-vxlan-tools.clab.yml", nil},
	{"088-containerlab-vxlan-stitch-linux/vxlan-stitch-linux.clab.yml", nil},
	{"054-containerlab-01-linux-nodes/01-linux-nodes.clab.yml", nil},
	{"072-containerlab-node-filter/node-filter.clab.yml", nil},
	{"063-containerlab-24-basic-groups/24-basic-groups.clab.yaml", nil},
	{"074-containerlab-stages-race/stages-race.clab.yml", nil},
	{"075-containerlab-stages/stages.clab.yml", nil},
	{"160-containerlab-clos5/clos5.yml", nil},
	{"212-containerlab-topol-dci03/dci03.clab.yml", nil},
}

// established counts the neighbours that a BGP summary shows with prefixes.
const established = `echo Established $(vtysh -c 'show bgp summary' | grep -cE '^eth.* [0-9]+:[0-9]+:[0-9]+ +[0-9]+')`

// check is a shell line in a node and what it must print.
type check struct{ node, want, line string }

// standIns are images that the test cluster has for theirs.
var standIns = []string{"sflow/clab-frr=quay.io/frrouting/frr:latest", "sflow/clab-iperf3=alpine:latest", "sflow/clab-sflow-rt=alpine:latest"}

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
			l.ready(t, 30*time.Second)
			for _, c := range run.checks {
				l.eventually(t, 90*time.Second, c.node, c.want, "sh", "-c", c.line)
			}
			s := l.status(t)
			t.Logf("%d nodes and %d links ready after %s", len(s.Nodes), len(s.Links), took.Round(100*time.Millisecond))
		})
	}
}
