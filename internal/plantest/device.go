package plantest

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/plan"
)

// What only the device or the issued certificate can tell is not guessed.
var deviceLabs = []lab{
	{
		name: "the release of SR Linux is asked in the device",
		topo: `name: old
topology:
  defaults: {kind: nokia_srlinux}
  nodes:
    s1: {image: "ghcr.io/nokia/srlinux:23.10.2"}
    s2: {image: "ghcr.io/nokia/srlinux:25.7.1"}
    s3: {image: "ghcr.io/nokia/srlinux"}
    s4: {image: "registry.example/srl@sha256:0000000000000000000000000000000000000000000000000000000000000000"}
`,
		look: func(t *testing.T, r *result) {
			for _, node := range []string{"s1", "s2", "s3", "s4"} {
				all := text(r.plan(t, node))
				if !strings.Contains(all, "info from state /system information version") {
					t.Errorf("%s: no step asks for the release", node)
				}
				// What a release does not know is typed only behind a question for it.
				for line := range strings.Lines(all) {
					if word := strings.TrimSpace(line); strings.HasPrefix(word, "set / system grpc-server") || strings.HasPrefix(word, "set / system gnmi-server") {
						t.Errorf("%s: %q is typed whatever the release", node, word)
					}
				}
			}
		},
	},
	{
		name: "the release of SR-SIM is that of the tag",
		topo: `name: sim
topology:
  defaults: {kind: nokia_srsim, license: lic}
  nodes:
    b: {image: "nokia_srsim:26.3.R1"}
    c: {image: "nokia_srsim"}
`,
		files: map[string]string{"lic": "a licence\n"},
		says:  []string{srsimIncomplete(" (and at 1 more place)")},
		look: func(t *testing.T, r *result) {
			// Releases from 26.3 on do not have it, and without a tag it is not known.
			for _, node := range []string{"b", "c"} {
				if config := string(r.file(t, node, "A/config/cf3/config.cfg").Content); strings.Contains(config, "grpc md-cli") || !strings.Contains(config, "system name "+node) {
					t.Errorf("%s: the configuration has what its release may not know:\n%s", node, config)
				}
			}
		},
	},
	{
		name: "certificates are those that are mounted",
		topo: `name: certs
topology:
  defaults: {image: "img:1", certificate: {issue: true}}
  nodes:
    srl: {kind: nokia_srlinux}
    vyos: {kind: vyosnetworks_vyos}
    eos: {kind: arista_ceos}
    sim: {kind: nokia_srsim, license: lic}
    vmx: {kind: juniper_vmx}
    host: {kind: linux}
`,
		files: map[string]string{"lic": "a licence\n"},
		says:  []string{srsimIncomplete("")},
		look: func(t *testing.T, r *result) {
			for node, p := range r.plans {
				checkCertificates(t, node, p)
			}
			for node, dir := range map[string]string{"srl": "/opt/clab-tls", "vyos": "/opt/clab-tls"} {
				all, mounted := text(r.plan(t, node)), false
				for _, m := range r.plan(t, node).Containers[0].Mounts {
					mounted = mounted || m.Target == dir
				}
				// The steps name the folder, and the files in it by a variable or in full.
				if !mounted || !strings.Contains(all, dir) || !strings.Contains(all, "/tls.key") {
					t.Errorf("%s: its steps do not read the certificate in %s", node, dir)
				}
			}
		},
	},
	{
		name: "certificates that a node binds",
		topo: `name: tls
topology:
  defaults: {image: "img:1"}
  nodes:
    a: {kind: linux, binds: ["__clabDir__/.tls/ca/ca.pem:/ca.pem:ro", "__clabNodeDir__/../.tls/a/a.pem:/a.pem", "__clabDir__/.tls/a/a.key:/a.key"]}
    b: {kind: juniper_crpd, binds: ["clab-tls/.tls:/tls"]}
    c: {kind: linux, binds: ["clab-tls/.tls/ca:/ca"]}
`,
		says: []string{
			`warning: the lab's CA issues .tls/ca/ca.pem when the lab is deployed, and not containerlab [file-generated]`,
			`warning: the lab's CA issues .tls/a/a.pem when the lab is deployed, and not containerlab [file-generated]`,
			`warning: the lab's CA issues .tls/a/a.key when the lab is deployed, and not containerlab [file-generated]`,
			`warning: the lab's CA issues .tls when the lab is deployed, and not containerlab [file-generated]`,
			`warning: the lab's CA issues .tls/ca when the lab is deployed, and not containerlab [file-generated]`,
		},
		look: func(t *testing.T, r *result) {
			for node, files := range map[string]map[string]string{
				"a": {"binds/ca.pem": "ca.crt", "binds/a.pem": "tls.crt", "binds/a.key": "tls.key"},
				"b": {"binds/tls/ca/ca.pem": "ca.crt", "binds/tls/b/b.pem": "tls.crt", "binds/tls/b/b.key": "tls.key"},
				"c": {"binds/ca/ca.pem": "ca.crt"},
			} {
				checkCertificates(t, node, r.plan(t, node))
				for name, part := range files {
					if got := r.file(t, node, name).Certificate; got != part {
						t.Errorf("%s: %s is %q, want %s", node, name, got, part)
					}
				}
			}
			if !mounts(r, t, "a", "/ca.pem") || !mounts(r, t, "b", "/tls") {
				t.Error("what is bound is not mounted")
			}
		},
	},
	{
		name: "certificates that no node gets",
		topo: `name: tls
topology:
  defaults: {image: "img:1", kind: linux}
  nodes:
    a: {binds: ["__clabDir__/.tls/ca/ca.key:/ca.key"]}
    b: {binds: ["__clabDir__/.tls/a/a.key:/a.key"]}
`,
		says: []string{
			`error: bind source "DIR/clab-tls/.tls/ca/ca.key" does not exist: no node gets the key of the lab's CA or the certificate of another node [file-missing]`,
			`error: bind source "DIR/clab-tls/.tls/a/a.key" does not exist: no node gets the key of the lab's CA or the certificate of another node [file-missing]`,
		},
	},
	{
		name: "logins and ports of management",
		topo: `name: access
topology:
  defaults: {image: "img:1"}
  nodes:
    srl: {kind: nokia_srlinux}
    eos: {kind: arista_ceos, credentials: {username: ops, password: secret}}
    vm: {kind: cisco_csr1000v}
    host: {kind: linux}
    br: {kind: bridge}
`,
		look: func(t *testing.T, r *result) {
			for node, want := range map[string]string{
				"srl": "admin NokiaSrl1! ssh:22 netconf:830 http:80 https:443 gnmi:57400 gnmi-insecure:57401 snmp:161",
				"eos": "ops secret ssh:22 https:443 netconf:830 gnmi:6030", "vm": "admin admin ssh:22", "host": " ", "br": " ",
			} {
				p := r.plan(t, node)
				got := p.Credentials.Username + " " + p.Credentials.Password
				for _, port := range p.Ports {
					got += fmt.Sprintf(" %s:%d", port.Name, port.Port)
				}
				if got != want {
					t.Errorf("%s: %q, want %q", node, got, want)
				}
			}
		},
	},
	{
		name: "IOL has an id of its own, and never 513",
		topo: iolTopology(150),
		look: func(t *testing.T, r *result) {
			ids := map[string]string{}
			for node, p := range r.plans {
				id := p.Containers[0].Env["IOL_PID"]
				var n int
				if _, err := fmt.Sscan(id, &n); err != nil || n < 1 || n > 1023 || n == 513 {
					t.Errorf("%s: IOL_PID is %q", node, id)
				}
				if other := ids[id]; other != "" {
					t.Errorf("%s and %s have id %s", node, other, id)
				}
				ids[id] = node
				if netmap := string(r.file(t, node, "NETMAP").Content); !strings.HasPrefix(netmap, id+":0/0 513:0/0\n") {
					t.Errorf("%s: NETMAP of id %s is %q", node, id, netmap)
				}
				r.file(t, node, fmt.Sprintf("nvram_%05d", n))
			}
		},
	},
	{
		name: "IOL by the one name that hashes to 513",
		topo: `name: iol513
topology:
  nodes:
    SW21: {kind: cisco_iol, image: "iol:17.12"}
`,
		says: []string{"warning: Kubernetes does not allow some names and shows SW21 as sw21 [name-mapped]"},
		look: func(t *testing.T, r *result) {
			if id := r.plan(t, "SW21").Containers[0].Env["IOL_PID"]; id == "513" || id == "" {
				t.Errorf("IOL_PID is %q", id)
			}
		},
	},
}

// srsimIncomplete is the warning of what neither planner carries for SR-SIM.
func srsimIncomplete(more string) string {
	return "warning: kind nokia_srsim is not carried in full: after the start it is not waited for NETCONF, and the certificate is not activated and the configuration not saved over it" + more + " [kind-incomplete]"
}

// iolTopology has n routers.
func iolTopology(n int) string {
	var b strings.Builder
	b.WriteString("name: iol\nmgmt: {ipv4-subnet: 172.20.0.0/16}\ntopology:\n  defaults: {kind: cisco_iol, image: 'iol:17'}\n  nodes:\n")
	for i := range n {
		fmt.Fprintf(&b, "    r%d:\n", i)
	}
	return b.String()
}

// checkCertificates looks for what only stands in for a certificate, in any of the ways
// in which a plan may have one, and for the files that are issued.
func checkCertificates(t *testing.T, node string, p *plan.Plan) {
	t.Helper()
	all := text(p)
	for _, sentence := range []string{"c9s stands in ca.crt", "c9s stands in tls.crt"} {
		if strings.Contains(all, sentence) || strings.Contains(all, base64.StdEncoding.EncodeToString([]byte(sentence))) {
			t.Errorf("%s: a stand-in for a certificate is typed or written", node)
		}
	}
	if strings.Contains(all, "-----BEGIN") {
		t.Errorf("%s: the plan holds a key or a certificate", node)
	}
	issued := 0
	for _, f := range p.Files {
		if f.Certificate == "" {
			continue
		}
		issued++
		if f.Certificate == "tls.key" && !f.Secret {
			t.Errorf("%s: the key %s is not a secret", node, f.Path)
		}
	}
	if issued > 0 && !p.Needs.Certificate {
		t.Errorf("%s: %d files have a certificate that nobody issues", node, issued)
	}
}
