package inventory

import (
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/contract"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// example has two kinds, labels of both tools, and a group that is called as a kind.
func example() *Lab {
	node := func(name, kind, user, password string, last byte, labels map[string]string) Node {
		return Node{
			Name: name, LongName: "clab-demo-" + name, FQDN: name + ".demo.io", Kind: kind, Image: kind + ":1", Labels: labels,
			IPv4: netip.AddrFrom4([4]byte{172, 20, 20, last}), MAC: "02:00:00:00:00:0" + string('0'+last), MgmtIntf: "eth0",
			Username: user, Password: password, Host: name, Proxy: "c9s dial " + name + ":22 -n 'a b'",
		}
	}
	return &Lab{
		Name: "demo", Namespace: "demo", IPv4: netip.MustParsePrefix("172.20.20.0/24"),
		Nodes: []Node{
			node("R1", "nokia_srlinux", "admin", "NokiaSrl1!", 2, map[string]string{"ansible-group": "core", "nornir-group": "pe", "nornir-group-2": "west", "role": "a \"leaf\""}),
			node("h1", "linux", "", "", 3, map[string]string{"ansible-group": "nokia_srlinux"}),
			node("h2", "linux", "op", "", 4, map[string]string{"ansible-no-host-var": "true"}),
		},
		Links: []contract.TopologyLink{
			{ID: 1, Kind: "wire", A: contract.TopologyEnd{Node: "R1", Interface: "e1-1"}, B: &contract.TopologyEnd{Node: "h1", Interface: "eth1"}},
			{Kind: "host", A: contract.TopologyEnd{Node: "h2", Interface: "eth1"}},
		},
	}
}

func formats(l *Lab) map[string]func() ([]byte, error) {
	return map[string]func() ([]byte, error){
		"ansible.yml": l.Ansible, "nornir.yml": l.Nornir, "topology-data.json": l.TopologyData, "nodes.csv": l.CSV,
		"prometheus.json": func() ([]byte, error) { return l.Prometheus(9273) },
	}
}

// Without secrets there is no password in any of them.
func TestFormats(t *testing.T) {
	for name, write := range formats(example()) {
		golden(t, name, write)
	}
	secrets := example()
	secrets.Secrets = true
	for _, name := range []string{"ansible.yml", "nornir.yml", "nodes.csv"} {
		golden(t, "secrets-"+name, formats(secrets)[name])
	}
	near := example()
	for i := range near.Nodes {
		near.Nodes[i].Proxy, near.Nodes[i].Host = "", near.Nodes[i].IPv4.String()
	}
	golden(t, "addresses-ansible.yml", near.Ansible)
}

func golden(t *testing.T, name string, write func() ([]byte, error)) {
	t.Helper()
	got, err := write()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-update rewrites it): -want +got\n%s", file, diff)
	}
}

// Ansible itself reads the inventory as it is meant.
func TestAnsibleReadsIt(t *testing.T) {
	program, err := exec.LookPath("ansible-inventory")
	if err != nil {
		t.Skip("needs ansible, to read the inventory")
	}
	out, err := exec.Command(program, "-i", filepath.Join("testdata", "ansible.yml"), "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Meta struct {
			HostVars map[string]map[string]any `json:"hostvars"`
		} `json:"_meta"`
		Core  struct{ Hosts []string } `json:"core"`
		SRL   struct{ Hosts []string } `json:"nokia_srlinux"`
		Linux struct{ Hosts []string } `json:"linux"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"R1"}, {"R1", "h1"}, {"h1", "h2"}}, [][]string{list.Core.Hosts, list.SRL.Hosts, list.Linux.Hosts}); diff != "" {
		t.Error(diff)
	}
	want := "-o ProxyCommand='c9s dial h2:22 -n '\\''a b'\\''' -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
	if h2 := list.Meta.HostVars["h2"]; h2["ansible_ssh_common_args"] != want || h2["ansible_user"] != "op" || h2["ansible_host"] != nil {
		t.Errorf("h2: %v", h2)
	}
	if r1 := list.Meta.HostVars["R1"]; r1["ansible_network_os"] != "nokia.srlinux.srlinux" || r1["ansible_user"] != "admin" || r1["ansible_password"] != nil {
		t.Errorf("R1: %v", r1)
	}
}
