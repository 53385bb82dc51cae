package policy

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

var update = flag.Bool("update", false, "rewrite generated files")

const labText = `
name: t
topology:
  defaults: {kind: linux, image: a}
  nodes:
    spine1: {kind: nokia_srlinux, group: spines, labels: {role: spine}, cpu: 2}
    leaf1: {kind: srl, labels: {role: leaf}}
    leaf2: {kind: srl}
    host1:
  links:
    - endpoints: ["spine1:e1-1", "leaf1:e1-1"]
    - endpoints: ["spine1:ethernet-1/2", "leaf2:e1-1"]
    - endpoints: ["leaf1:e1-2", "host1:eth1"]
`

// apply compiles the lab under a policy.
func apply(t *testing.T, policy string) (*lab.Lab, []diag.Diagnostic) {
	t.Helper()
	p, diags := Load("c9s.yaml", []byte("apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n"+policy))
	if p == nil {
		t.Fatalf("the policy is refused: %v", diags)
	}
	f, _ := topology.Load(t.Context(), &topology.Source{Name: "t.clab.yml", Data: []byte(labText)}, topology.Options{})
	return compile.Compile(t.Context(), f, compile.Options{Policy: p})
}

// matching lists the nodes that a profile with this match sets.
func matching(t *testing.T, match string) string {
	t.Helper()
	l, _ := apply(t, "- {name: p, match: "+match+", set: {imagePullPolicy: Never}}\n")
	var names []string
	for _, n := range l.Nodes {
		if n.Policy.ImagePullPolicy == "Never" {
			names = append(names, n.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestSelectors(t *testing.T) {
	for match, want := range map[string]string{
		"{}":                                   "host1 leaf1 leaf2 spine1",
		"{names: ['leaf*', host1]}":            "host1 leaf1 leaf2",
		"{kinds: [nokia_srlinux]}":             "leaf1 leaf2 spine1",
		"{kinds: [srl]}":                       "leaf1 leaf2",
		"{groups: [spines]}":                   "spine1",
		"{labels: {role: leaf}}":               "leaf1",
		"{names: ['*1'], kinds: [linux]}":      "host1",
		`{expression: 'node.kind == "linux"'}`: "host1",
		`{expression: 'size(node.interfaces) > 1 && node.cpu < 1.0'}`:             "leaf1",
		`{expression: '"role" in node.labels && node.labels["role"] == "spine"'}`: "spine1",
		`{expression: 'node.name.startsWith("leaf") && node.name.endsWith("2")'}`: "leaf2",
	} {
		if got := matching(t, match); got != want {
			t.Errorf("%s selects %q, want %q", match, got, want)
		}
	}
}

func TestPriorityNameAndDeny(t *testing.T) {
	l, diags := apply(t, `
- {name: late, priority: 200, set: {imagePullPolicy: Always, nodeSelector: {late: "yes"}}}
- {name: b, set: {imagePullPolicy: Never}}
- {name: a, set: {imagePullPolicy: IfNotPresent}}
- {name: first, priority: 1, match: {names: [spine1]}, set: {imagePullPolicy: Never}}
- {name: stop, priority: 150, deny: true, match: {names: [host1]}}
- {name: nobody, match: {names: [x]}}
`)
	for name, want := range map[string]string{"spine1": "Never yes", "leaf1": "IfNotPresent yes", "host1": "IfNotPresent "} {
		p := l.Node(name).Policy
		if got := p.ImagePullPolicy + " " + p.NodeSelector["late"]; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	var unused []string
	for _, d := range diags {
		if d.Code == CodeUnused {
			unused = append(unused, d.String())
		}
	}
	if diff := cmp.Diff([]string{`c9s.yaml:10:3: warning: profile "nobody" matches no node [policy-unused]`}, unused); diff != "" {
		t.Error(diff)
	}
}

func TestEncrypt(t *testing.T) {
	l, _ := apply(t, "\n- {name: all}\n")
	if l.EncryptWires {
		t.Error("wires are encrypted by default")
	}
	p, diags := Load("c9s.yaml", []byte("apiVersion: c9s.dev/v1\nkind: Policy\nwires: {encrypt: true}\n"))
	if p == nil {
		t.Fatal(diags)
	}
	p.Apply(l, &diag.List{})
	if !l.EncryptWires {
		t.Error("wires.encrypt does nothing")
	}
}

// TestImage: the c9s image of a lab can be in the policy.
func TestImage(t *testing.T) {
	l, _ := apply(t, "\n- {name: all}\n")
	p, diags := Load("c9s.yaml", []byte("apiVersion: c9s.dev/v1\nkind: Policy\nimage: registry.example.net/c9s:1.2\n"))
	if p == nil {
		t.Fatal(diags)
	}
	p.Apply(l, &diag.List{})
	if l.Image != "registry.example.net/c9s:1.2" {
		t.Errorf("image %q", l.Image)
	}
	if p, diags := Load("c9s.yaml", []byte("apiVersion: c9s.dev/v1\nkind: Policy\nimage: 'No Image'\n")); p != nil || len(diags) != 1 || diags[0].Code != CodeInvalid {
		t.Errorf("a malformed image: %v", diags)
	}
}

func TestEveryField(t *testing.T) {
	l, _ := apply(t, `
- name: all
  match: {names: [spine1]}
  set:
    expose: {type: LoadBalancer, ports: [22, "161/udp"], useMgmtAddress: true}
    resources: {requests: {cpu: 500m, memory: 1Gi}}
    nodeSelector: {a: b}
    affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: Exists}]}]}}}
    tolerations: [{key: t, operator: Exists}]
    persistence: {enabled: true, size: 5Gi, storageClass: fast}
    imagePullPolicy: Always
    imagePullSecrets: [pull]
    probes: {readiness: {tcpSocket: {port: 22}}}
    privileged: false
    kvm: optional
    secretFiles: ["/etc/ssl/*"]
    strictExec: true
  links:
    - {interface: "e1-1", datapath: udp, impair: {delay: 10ms, jitter: 500us, loss: 1.5, rate: 10mbit, seed: 7}}
    - {interface: "ethernet-1/*", peer: leaf2, mtu: 1400, impair: {delay: 1s}}
`)
	p := l.Node("spine1").Policy
	cpu, memory := p.Resources.Requests.Cpu().String(), p.Resources.Requests.Memory().String()
	got := map[string]any{
		"expose": *p.Expose, "resources": cpu + " " + memory, "tolerations": p.Tolerations[0].Key, "persistence": *p.Persistence,
		"affinity": p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Key,
		"pull":     p.ImagePullPolicy + " " + p.ImagePullSecrets[0], "probe": p.Readiness.TCPSocket.Port.IntValue(),
		"privileged": *p.Privileged, "kvm": p.KVM, "strict": *p.StrictExec, "secret": p.SecretFiles[0],
	}
	want := map[string]any{
		"expose":    lab.Expose{Type: "LoadBalancer", Ports: []lab.Port{{Container: 22, Protocol: "TCP"}, {Container: 161, Protocol: "UDP"}}, UseMgmtAddress: true},
		"resources": "500m 1Gi", "tolerations": "t", "persistence": lab.Persistence{Enabled: true, Size: "5Gi", StorageClass: "fast"},
		"affinity": "k", "pull": "Always pull", "probe": 22, "privileged": false, "kvm": "optional", "strict": true, "secret": "/etc/ssl/*",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(lab.Policy{}, l.Node("leaf1").Policy); diff != "" {
		t.Errorf("a node that no profile matches: %s", diff)
	}
	first, second := l.Links[0], l.Links[1]
	if first.Datapath != "udp" || first.Impairment.AToB != (lab.Impairment{DelayMS: 10, JitterMS: 0.5, Loss: 1.5, RateKbit: 10000, Seed: 7}) || first.Impairment.BToA != (lab.Impairment{}) {
		t.Errorf("first link: %q %+v", first.Datapath, first.Impairment)
	}
	if second.Datapath != "" || second.Impairment.AToB.DelayMS != 1000 {
		t.Errorf("second link: %q %+v", second.Datapath, second.Impairment)
	}
	if near, far := second.Endpoints[0].MTU, second.Endpoints[1].MTU; near != 1400 || far != 0 || first.Endpoints[0].MTU != 0 {
		t.Errorf("MTUs of the ends: %d and %d", near, far)
	}
}

// TestMgmtNames: the names of the management network can have a suffix.
func TestMgmtNames(t *testing.T) {
	for text, want := range map[string]bool{"": false, "mgmt-names: plain\n": false, "mgmt-names: suffix\n": true} {
		l, _ := apply(t, "\n- {name: all}\n")
		p, diags := Load("c9s.yaml", []byte("apiVersion: c9s.dev/v1\nkind: Policy\n"+text))
		if p == nil {
			t.Fatal(diags)
		}
		p.Apply(l, &diag.List{})
		if l.SuffixMgmtNames != want {
			t.Errorf("%q: %v", text, l.SuffixMgmtNames)
		}
	}
}

func TestInvalidPolicies(t *testing.T) {
	const head = "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n"
	tests := map[string]string{
		"":                                  "c9s.yaml: error: the policy file is empty [policy-invalid]",
		"a: [":                              "c9s.yaml:1:1: error: did not find expected node content [yaml-syntax]",
		"profiles: []\n":                    "c9s.yaml:1:1: error: the policy file has no apiVersion [policy-invalid]\nc9s.yaml:1:1: error: the policy file has no kind [policy-invalid]",
		"apiVersion: v2\nkind: Policy\n":    "c9s.yaml:1:13: error: apiVersion is \"v2\" [policy-invalid]",
		head + "- {set: {}}\n":              "c9s.yaml:4:3: error: a profile has no name [policy-invalid]",
		head + "- {name: a}\n- {name: a}\n": "c9s.yaml:5:3: error: profile \"a\" is defined twice (first at line 4) [policy-invalid]",
		head + "- {name: a, prio: 1}\n":     "c9s.yaml:4:13: error: unknown key \"prio\" in a profile [policy-invalid]",
		head + "- {name: a, priority: x}\n": "c9s.yaml:4:23: error: priority must be a whole number, not the text \"x\" [policy-invalid]",
		head + "- {name: a, match: {name: [a]}}\n":                                                                           "c9s.yaml:4:21: error: unknown key \"name\" in match [policy-invalid]",
		head + "- {name: a, match: {names: ['[']}}\n":                                                                        "c9s.yaml:4:28: error: pattern \"[\" is malformed [policy-invalid]",
		head + "- {name: a, match: {expression: 'node.kind = 1'}}\n":                                                         "c9s.yaml:4:44: error: expression: Syntax error: token recognition error at: '= ' [policy-expression]\nc9s.yaml:4:46: error: expression: Syntax error: extraneous input '1' expecting <EOF> [policy-expression]",
		head + "- {name: a, match: {expression: 'node.knd == \"x\"'}}\n":                                                     "c9s.yaml:4:38: error: expression: undefined field 'knd' [policy-expression]",
		head + "- {name: a, match: {expression: node.name}}\n":                                                               "c9s.yaml:4:33: error: expression: it must be true or false, not string [policy-expression]",
		head + "- {name: a, set: {expose: {type: Public}}}\n":                                                                "c9s.yaml:4:27: error: expose.type \"Public\" is not ClusterIP, LoadBalancer, NodePort, Headless or None [policy-invalid]",
		head + "- {name: a, set: {expose: {ports: [x]}}}\n":                                                                  "c9s.yaml:4:27: error: expose.ports: port \"x\": \"x\" is not a port from 1 to 65535 [policy-invalid]",
		head + "- {name: a, set: {expose: {ports: [0]}}}\n":                                                                  "c9s.yaml:4:27: error: expose.ports: port \"0\": \"0\" is not a port from 1 to 65535 [policy-invalid]",
		head + "- {name: a, set: {privileged: 1}}\n":                                                                         "c9s.yaml:4:31: error: privileged must be true or false, not the number 1 [policy-invalid]",
		head + "- {name: a, set: {kvm: never}}\n":                                                                            "c9s.yaml:4:24: error: kvm \"never\" is not required or optional [policy-invalid]",
		head + "- {name: a, set: {tolerations: {key: a}}}\n":                                                                 "c9s.yaml:4:32: error: tolerations must be a list, not a mapping [policy-invalid]",
		head + "- {name: a, set: {tolerations: [{key: a b}]}}\n":                                                             "c9s.yaml:4:32: error: tolerations: \"a b\" cannot be the key of a taint [policy-invalid]",
		head + "- {name: a, set: {tolerations: [{key: a, operator: In}]}}\n":                                                 "c9s.yaml:4:32: error: tolerations: operator \"In\" is not Exists or Equal [policy-invalid]",
		head + "- {name: a, set: {tolerations: [{key: a, effect: No}]}}\n":                                                   "c9s.yaml:4:32: error: tolerations: effect \"No\" is not NoSchedule, PreferNoSchedule or NoExecute [policy-invalid]",
		head + "- {name: a, set: {tolerations: [{value: a}]}}\n":                                                             "c9s.yaml:4:32: error: tolerations: without a key the operator must be Exists [policy-invalid]",
		head + "- {name: a, set: {expose: {shared: true}}}\n":                                                                "c9s.yaml:4:27: error: expose.shared needs expose.type LoadBalancer [policy-invalid]",
		head + "- {name: a, set: {expose: {type: LoadBalancer, shared: true, useMgmtAddress: true}}}\n":                      "c9s.yaml:4:27: error: expose.shared excludes expose.useMgmtAddress: the nodes share one address [policy-invalid]",
		head + "- {name: a, set: {exposed: {}}}\n":                                                                           "c9s.yaml:4:19: error: unknown key \"exposed\" in set [policy-invalid]",
		head + "- {name: a, set: {probes: {ssh: {}, noReadiness: true}}}\n":                                                  "c9s.yaml:4:27: error: probes.ssh is a readiness probe: remove readiness and noReadiness, or ssh [policy-invalid]",
		head + "- {name: a, set: {probes: {ssh: {port: 70000}}}}\n":                                                          "c9s.yaml:4:27: error: probes.ssh: port 70000 is not a number from 1 to 65535 [policy-invalid]",
		head + "- {name: a, set: {probes: {ssh: {password: a, secret: b}}}}\n":                                               "c9s.yaml:4:27: error: probes.ssh has a password and a secret: remove one of them [policy-invalid]",
		head + "- {name: a, set: {probes: {ssh: {key: a}}}}\n":                                                               "c9s.yaml:4:27: error: probes.ssh has a key without a secret [policy-invalid]",
		head + "- {name: a, set: {probes: {ssh: {secret: A B}}}}\n":                                                          "c9s.yaml:4:27: error: probes.ssh: \"A B\" cannot be the name of a Secret [policy-invalid]",
		head + "- {name: a, set: {probes: {ssh: {secret: a, key: a/b}}}}\n":                                                  "c9s.yaml:4:27: error: probes.ssh: \"a/b\" cannot be a key of a Secret [policy-invalid]",
		head + "- {name: a, set: {probes: {ssh: {user: a}}}}\n":                                                              "c9s.yaml:4:34: error: unknown key \"user\" in probes.ssh [policy-invalid]",
		head + "- {name: a, set: {resources: {limit: {}}}}\n":                                                                "c9s.yaml:4:31: error: unknown key \"limit\" in resources [policy-invalid]",
		head + "- {name: a, set: {persistence: {enabled: true, size: big}}}\n":                                               "c9s.yaml:4:32: error: persistence.size \"big\" is not a quantity such as 5Gi [policy-invalid]",
		head + "- {name: a, set: {imagePullPolicy: Sometimes}}\n":                                                            "c9s.yaml:4:36: error: imagePullPolicy \"Sometimes\" is not Always, IfNotPresent or Never [policy-invalid]",
		head + "- {name: a, set: {imagePullSecrets: [A B]}}\n":                                                               "c9s.yaml:4:37: error: imagePullSecrets: \"A B\" cannot be the name of a Secret [policy-invalid]",
		head + "- {name: a, set: {nodeSelector: {'a b': c}}}\n":                                                              "c9s.yaml:4:33: error: nodeSelector: a b=c is not a label [policy-invalid]",
		head + "- {name: a, links: [{mtu: 60}]}\n":                                                                           "c9s.yaml:4:21: error: mtu 60 is not possible [policy-invalid]",
		head + "- {name: a, links: [{datapath: fast}]}\n":                                                                    "c9s.yaml:4:21: error: unknown datapath \"fast\" [policy-invalid]",
		"apiVersion: c9s.dev/v1\nkind: Policy\nwires: {encrypt: true}\nprofiles:\n- {name: a, links: [{datapath: vxlan}]}\n": "c9s.yaml:5:21: error: datapath vxlan cannot be encrypted [policy-invalid]",
		"apiVersion: c9s.dev/v1\nkind: Policy\nwires: {local: false}\nprofiles:\n- {name: a, links: [{datapath: local}]}\n":  "c9s.yaml:5:21: error: datapath local is not there with wires.local: false [policy-invalid]",
		"apiVersion: c9s.dev/v1\nkind: Policy\nplacement: tight\n":                                                           "c9s.yaml:3:12: error: placement is \"tight\" [policy-invalid]",
		"apiVersion: c9s.dev/v1\nkind: Policy\nboot: {perWorker: 0}\n":                                                       "c9s.yaml:3:7: error: boot has perWorker 0, not a number from 1 [policy-invalid]",
		"apiVersion: c9s.dev/v1\nkind: Policy\nboot: {perHost: 1}\n":                                                         "c9s.yaml:3:8: error: unknown key \"perHost\" in boot [policy-invalid]",
		"apiVersion: c9s.dev/v1\nkind: Policy\nshared-claim: My Files\n":                                                     "c9s.yaml:3:15: error: shared-claim \"My Files\" is not a name of Kubernetes [policy-invalid]",
		"apiVersion: c9s.dev/v1\nkind: Policy\nmgmt-names: no\n":                                                             "c9s.yaml:3:13: error: mgmt-names is \"no\" [policy-invalid]",
		"apiVersion: c9s.dev/v1\nkind: Policy\nwires: {encrypt: maybe}\n":                                                    "c9s.yaml:3:18: error: encrypt must be true or false, not the text \"maybe\" [policy-invalid]",
		head + "- {name: a, links: [{impair: {loss: 101}}]}\n":                                                               "c9s.yaml:4:21: error: impair: loss 101 is not between 0 and 100 percent [policy-invalid]",
		head + "- {name: a, links: [{impair: {delay: slow}}]}\n":                                                             "c9s.yaml:4:21: error: impair: delay \"slow\" is not a duration from 0s to 1m, such as 10ms [policy-invalid]",
		head + "- {name: a, links: [{impair: {rate: 5}}]}\n":                                                                 "c9s.yaml:4:37: error: rate must be text, not the number 5 [policy-invalid]",
		head + "- {name: a, links: [{impair: {rate: 5 bananas}}]}\n":                                                         "c9s.yaml:4:21: error: impair: rate \"5 bananas\" is not a rate from 1kbit to 1000gbit, such as 10mbit [policy-invalid]",
	}
	for text, want := range tests {
		p, diags := Load("c9s.yaml", []byte(text))
		var got []string
		for _, d := range diags {
			got = append(got, d.String())
		}
		if all := strings.Join(got, "\n"); all != want || p != nil {
			t.Errorf("%s\n got %s\nwant %s", text, all, want)
		}
	}
}

func TestExpressionThatFailsAtRunTime(t *testing.T) {
	_, diags := apply(t, `- {name: p, match: {expression: 'node.labels["role"] == "leaf"'}}`+"\n")
	found := 0
	for _, d := range diags {
		if d.Code == CodeExpression && d.Severity == diag.Error {
			found++
		}
	}
	if found != 2 { // leaf2 and host1 have no such label
		t.Errorf("%d errors: %v", found, diags)
	}
}

// TestSchema holds docs/c9s.schema.json against the types.
func TestSchema(t *testing.T) {
	got, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	const file = "../../docs/c9s.schema.json"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(got) {
		t.Errorf("%s is not up to date; run go test ./pkg/policy -update", file)
	}
	var schema struct {
		Defs map[string]struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(got, &schema); err != nil {
		t.Fatal(err)
	}
	for def, field := range map[string]string{"Profile": "match", "Set": "expose", "LinkRule": "impair", "ResourceRequirements": "limits", "Probe": "httpGet", "Toleration": "effect"} {
		if _, ok := schema.Defs[def].Properties[field]; !ok {
			t.Errorf("the schema has no %s.%s", def, field)
		}
	}
}

// TestSSHProbe: the first profile with a readiness probe of any form counts; what the probe does
// not set is the node's own.
func TestSSHProbe(t *testing.T) {
	p, diags := Load("c9s.yaml", []byte(`apiVersion: c9s.dev/v1
kind: Policy
profiles:
- {name: a, priority: 1, match: {names: [r1]}, set: {probes: {ssh: {secret: logins}}}}
- {name: b, priority: 2, match: {names: [r2]}, set: {probes: {noReadiness: true}}}
- {name: c, priority: 3, set: {probes: {ssh: {port: 2022, username: u}}}}
`))
	if p == nil {
		t.Fatal(diags)
	}
	l := &lab.Lab{Nodes: []*lab.Node{
		{Name: "r1", Credentials: lab.Credentials{Username: "admin", Password: "x"}}, {Name: "r2"},
		{Name: "r3", Credentials: lab.Credentials{Username: "admin", Password: "y"}},
	}}
	list := &diag.List{}
	p.Apply(l, list)
	if got := l.Nodes[0].Policy.SSH; got == nil || got.Username != "admin" || got.Password != "" || got.Secret != "logins" || got.Key != "password" || got.Port != 22 {
		t.Errorf("r1 has %+v", got)
	}
	if got := l.Nodes[1].Policy; got.SSH != nil || !got.NoReadiness {
		t.Errorf("r2 has %+v", got.SSH)
	}
	if got := l.Nodes[2].Policy.SSH; got == nil || got.Username != "u" || got.Password != "y" || got.Port != 2022 {
		t.Errorf("r3 has %+v", got)
	}
	p, _ = Load("c9s.yaml", []byte("apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n- {name: a, set: {probes: {ssh: {}}}}\n"))
	p.Apply(&lab.Lab{Nodes: []*lab.Node{{Name: "h", Kind: "linux"}}}, list)
	if all := list.All(); len(all) != 1 || all[0].String() != `c9s.yaml:4:27: error: node "h" has an SSH probe, and its kind linux has no credentials [policy-invalid]` {
		t.Errorf("without credentials: %v", all)
	}
}
