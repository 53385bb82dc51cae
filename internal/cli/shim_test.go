//go:build !nocluster

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// fakeCluster is an API server with one lab, demo in namespace ns: R1 runs, R2 has ended. It
// keeps the requests that are no reads.
type fakeCluster struct {
	mu       sync.Mutex
	requests []string
}

func (f *fakeCluster) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

const idR1 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// newFakeCluster starts it, and points KUBECONFIG to it.
func newFakeCluster(t *testing.T) *fakeCluster {
	t.Helper()
	f := &fakeCluster{}
	meta := func(name, kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "ns", ResourceVersion: "1", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)),
			Labels: map[string]string{contract.LabelLab: "demo", contract.LabelComponent: kind}}
	}
	directory := meta("c9s-directory", contract.ComponentLab)
	directory.Annotations = map[string]string{contract.AnnotationLabName: "demo"}
	var nodes []contract.DirectoryNode
	var deployments appsv1.DeploymentList
	var pods corev1.PodList
	objects := map[string]any{}
	for i, name := range []string{"R1", "R2"} {
		c := containerOf(name, fmt.Sprintf("172.20.20.1%d", i+1), strings.Repeat(fmt.Sprint(i), 2)+idR1[2:], i == 0)
		nodes = append(nodes, c.Directory)
		d := appsv1.Deployment{ObjectMeta: meta(c.Deployment, contract.ComponentNode)}
		containers, _ := json.Marshal(map[string][]string{name: c.Containers})
		d.Annotations = map[string]string{contract.AnnotationNodeName: name, contract.AnnotationSource: "demo.clab.yml",
			contract.AnnotationTopologyLabels: `{"` + name + `":{"role":"leaf"}}`}
		d.Labels[contract.LabelKind] = "linux"
		d.Spec.Template.Annotations = map[string]string{contract.AnnotationContainers: string(containers)}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: c.Deployment, Image: "alpine:3", Command: []string{"sleep"}, Args: []string{"infinity"}}}
		deployments.Items = append(deployments.Items, d)
		pod := *c.Pod
		pod.Labels = map[string]string{contract.LabelPod: c.Deployment, contract.LabelLab: "demo", contract.LabelComponent: contract.ComponentNode}
		pod.Spec = d.Spec.Template.Spec
		pod.Spec.NodeName = "n1"
		pod.Status.Phase = corev1.PodRunning
		pods.Items = append(pods.Items, pod)
		objects["/api/v1/namespaces/ns/pods/"+pod.Name] = pod
		links, _ := json.Marshal(contract.Links{Version: contract.LinksVersion, Pod: c.Deployment, Mgmt: &contract.Mgmt{
			IPv4: netip.MustParsePrefix("172.20.20.11/24"), IPv6: netip.MustParsePrefix("3fff:172:20:20::11/64"), GatewayV4: netip.MustParseAddr("172.20.20.1")},
			Interfaces: []contract.Interface{{Name: "eth1", Node: name, Alias: "ge-0/0/0", Wire: &contract.Wire{ID: 7, PeerNode: map[string]string{"R1": "R2", "R2": "R1"}[name], PeerInterface: "eth1",
				Impairment: &contract.Impairment{DelayMS: 5, Loss: 0.1}}}}})
		objects["/api/v1/namespaces/ns/configmaps/"+c.Deployment+"-links"] = corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta(c.Deployment+"-links", contract.ComponentNode), Data: map[string]string{contract.LinksFile: string(links)}}
	}
	text, _ := json.Marshal(contract.Directory{Version: contract.DirectoryVersion, Lab: "demo", Nodes: nodes})
	topology, _ := json.Marshal(contract.Topology{Version: contract.TopologyVersion, Lab: "demo"})
	configMap := func(m metav1.ObjectMeta, key, text string) corev1.ConfigMap {
		return corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: m, Data: map[string]string{key: text}}
	}
	deployments.TypeMeta, pods.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}, metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}
	metadata := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, Items: []metav1.PartialObjectMetadata{{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: directory}}}
	maps.Copy(objects, map[string]any{
		"/version":                         map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
		"/api/v1/configmaps":               metadata,
		"/api/v1/namespaces/ns/configmaps": metadata,
		"/api/v1/namespaces/ns/configmaps/c9s-directory":   configMap(directory, contract.DirectoryFile, string(text)),
		"/api/v1/namespaces/ns/configmaps/c9s-topology":    configMap(meta("c9s-topology", contract.ComponentLab), contract.TopologyFile, string(topology)),
		"/apis/apps/v1/namespaces/ns/deployments":          deployments,
		"/api/v1/namespaces/ns/pods":                       pods,
		"/api/v1/namespaces/ns/pods/r1-7c9-x/log":          "line 1\nline 2\n",
		"/apis/authorization.k8s.io/v1/selfsubjectreviews": nil,
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		exec := strings.HasSuffix(r.URL.Path, "/exec")
		if r.Method != http.MethodGet || exec || strings.HasSuffix(r.URL.Path, "/log") {
			f.mu.Lock()
			f.requests = append(f.requests, r.URL.Path+"?"+r.URL.RawQuery)
			f.mu.Unlock()
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if r.Method == http.MethodPut {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			updated, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
			if err != nil {
				t.Error(err)
				return
			}
			cm := updated.(*corev1.ConfigMap)
			cm.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
			objects[r.URL.Path] = *cm
		}
		o, ok := objects[strings.TrimSuffix(r.URL.Path, "/status")]
		if text, plain := o.(string); plain {
			fmt.Fprint(w, text)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if !ok || exec {
			w.WriteHeader(http.StatusNotFound)
			o = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: r.URL.Path + " not found"}
		}
		_ = json.NewEncoder(w).Encode(o)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config")
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: here, context: {cluster: c, user: u, namespace: other}}]\ncurrent-context: here\n", server.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	t.Chdir(t.TempDir())
	return f
}

// The name of the program decides in whose place it answers.
func TestArguments(t *testing.T) {
	for argv, want := range map[string]string{
		"/usr/bin/c9s version":       "version",
		"docker ps -q":               "shim docker ps -q",
		"/usr/local/bin/docker":      "shim docker",
		"/opt/bin/containerlab i -a": "shim containerlab i -a",
		"clab version":               "shim containerlab version",
		"Containerlab.exe version":   "shim containerlab version",
	} {
		if got := strings.Join(Arguments(strings.Fields(argv)), " "); got != want {
			t.Errorf("%s: %s, want %s", argv, got, want)
		}
	}
}

// called runs a command line that is to work.
func called(t *testing.T, line ...string) string {
	t.Helper()
	out, errs, code := run(t, Arguments(line)...)
	if code != 0 {
		t.Errorf("%s: exit code %d: %s", strings.Join(line, " "), code, errs)
	}
	return out
}

// Calls of lab authors' scripts.
func TestDockerReads(t *testing.T) {
	newFakeCluster(t)
	for _, c := range []struct {
		line []string
		want string
	}{
		{[]string{"ps", "--format", "{{.Names}}"}, "clab-demo-R1\n"},
		{[]string{"ps", "-aq"}, "001234\n"},
		{[]string{"ps", "-a", "--format", "{{.Names}} {{.State}}", "--filter", "name=clab-demo"}, "clab-demo-R1 running\nclab-demo-R2 exited\n"},
		{[]string{"container", "ls", "-a", "-f", "label=clab-node-name=R2", "--format", `table {{.Names}}\t{{.Label "role"}}`}, "NAMES          role\nclab-demo-R2   leaf\n"},
		{[]string{"ps", "-f", "status=exited", "-f", "label=containerlab=demo", "--format", "{{.Image}}"}, "alpine:3\n"},
		{[]string{"ps", "-f", "name=^clab-other", "-q"}, ""},
		{[]string{"inspect", "-f", "{{.State.Running}}", "clab-demo-R1"}, "true\n"},
		{[]string{"inspect", "-f", "{{.State.Status}} {{.State.ExitCode}} {{.Name}}", "clab-demo-R2"}, "exited 3 /clab-demo-R2\n"},
		{[]string{"inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}/{{.IPPrefixLen}}{{end}}", "clab-demo-R1"}, "172.20.20.11/24\n"},
		{[]string{"inspect", "-f", "{{.NetworkSettings.Networks.clab.IPAddress}} {{.NetworkSettings.IPAddress}}", "clab-demo-R1"}, "172.20.20.11 172.20.20.11\n"},
		{[]string{"inspect", "-f", `{{index .Config.Labels "clab-node-kind"}} {{.Config.Image}} {{json .Args}}`, "clab-demo-R1"}, "linux alpine:3 [\"infinity\"]\n"},
		{[]string{"inspect", "-f", "{{.Id}}", "00" + idR1[2:10]}, "00" + idR1[2:] + "\n"},
		{[]string{"inspect", "-f", "{{.State.Health.Status}}{{.State.Pid}}", "clab-demo-R1", "r1-7c9-x"}, "healthy0\nhealthy0\n"},
		{[]string{"logs", "--tail", "2", "clab-demo-R1"}, "line 1\nline 2\n"},
		{[]string{"version", "--format", "{{.Server.Version}}"}, Version + "\n"},
	} {
		got := called(t, append([]string{"docker"}, c.line...)...)
		if c.line[len(c.line)-1] == "-aq" {
			got = strings.Join(strings.Fields(got), " ")
			c.want = "00" + idR1[2:12] + " 11" + idR1[2:12]
		}
		if got != c.want {
			t.Errorf("docker %q:\ngot  %q\nwant %q", c.line, got, c.want)
		}
	}
	var all []map[string]any
	if err := json.Unmarshal([]byte(called(t, "docker", "inspect", "clab-demo-R1")), &all); err != nil || len(all) != 1 || all[0]["Name"] != "/clab-demo-R1" {
		t.Errorf("%v: %v", err, all)
	}
	table := called(t, "docker", "ps")
	if !strings.HasPrefix(table, "CONTAINER ID   IMAGE      COMMAND            CREATED") || !strings.Contains(table, `"sleep infinity"`) || !strings.Contains(table, "Up 20m (healthy)") {
		t.Errorf("docker ps prints %s", table)
	}
}

func TestDockerRejects(t *testing.T) {
	newFakeCluster(t)
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"build .", "there is no docker behind this name; c9s answers exec, logs, cp, ps, inspect", 1},
		{"exec clab-demo-R9 true", "no such container: clab-demo-R9", 1},
		{"exec clab-demo-R2 true", "container clab-demo-R2 is not running: it is exited (3)", 1},
		{"inspect -f {{.State.Running}} nothing", "no such container: nothing", 1},
		{"ps -f before=x", "--filter before: use id, name, label", 2},
		{"ps --format {{.Nothing}}", "--format", 1},
		{"cp a b", "name one node", 2},
		{"cp clab-demo-R1:/a clab-demo-R1:/b", "name one node", 2},
		{"logs --tail x clab-demo-R1", "--tail \"x\": use a number or all", 2},
	} {
		_, errs, code := run(t, Arguments(append([]string{"docker"}, strings.Fields(c.line)...))...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("docker %s: exit code %d: %s, want %d: %s", c.line, code, errs, c.code, c.want)
		}
	}
}

// exec asks Kubernetes for the command itself where that will do, and for the helper where it
// will not.
func TestDockerExec(t *testing.T) {
	t.Setenv("FROM_HERE", "yes")
	for _, c := range []struct{ line, want string }{
		{"exec clab-demo-R1 vtysh -c show", "vtysh -c show"},
		{"exec -i clab-demo-R1 sh -c true", "sh -c true"},
		{"exec -e A=1 -e FROM_HERE -e NOT_HERE --user root -w /tmp clab-demo-R1 env -i", "/c9s/exec as --user root --dir /tmp --env A=1 --env FROM_HERE=yes -- env -i"},
		{"exec -d clab-demo-R1 iperf3 -s", "/c9s/exec as --detach -- iperf3 -s"},
		{"container exec --privileged clab-demo-R1 id", "id"},
	} {
		f := newFakeCluster(t)
		_, _, _ = run(t, Arguments(append([]string{"docker"}, strings.Fields(c.line)...))...)
		requests := f.seen()
		if len(requests) == 0 {
			t.Errorf("docker %s asks nothing", c.line)
			continue
		}
		path, query, _ := strings.Cut(requests[0], "?")
		var got []string
		r, _ := http.NewRequest(http.MethodGet, "http://x/?"+query, nil)
		got = append(got, r.URL.Query()["command"]...)
		if path != "/api/v1/namespaces/ns/pods/r1-7c9-x/exec" || r.URL.Query().Get("container") != "r1" || strings.Join(got, " ") != c.want {
			t.Errorf("docker %s: %s %q, want %q", c.line, path, got, c.want)
		}
	}
}

// Two labs may have a container of one name.
func TestPickContainer(t *testing.T) {
	there, here := containerR1(), containerR1()
	there.Lab.Namespace = "team-b"
	for _, c := range []struct{ prefer, want, failed string }{
		{"ns", "ns", ""}, {"team-b", "team-b", ""}, {"default", "", "clab-demo-R1 is the name of several containers: clab-demo-R1 in namespace team-b, clab-demo-R1 in namespace ns"},
	} {
		got, err := pickContainer([]cluster.Container{there, here}, "clab-demo-R1", c.prefer)
		switch {
		case c.failed != "":
			if err == nil || !strings.Contains(err.Error(), c.failed) {
				t.Errorf("%v", err)
			}
		case err != nil || got.Lab.Namespace != c.want:
			t.Errorf("%s: %+v, %v", c.prefer, got, err)
		}
	}
	chassis := containerOf("SR1", "172.20.20.5", idR1, true)
	chassis.Containers = []string{"sr1-a", "sr1-1"}
	if got, err := pickContainer([]cluster.Container{chassis}, "clab-demo-SR1-A", ""); err != nil || got == nil || got.node != "SR1/a" {
		t.Errorf("a card: %+v, %v", got, err)
	}
}

// The calls of the VS Code extension, as it makes them.
func TestContainerlabReads(t *testing.T) {
	newFakeCluster(t)
	type object = map[string]any
	parse := func(text string) (out any) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return out
	}
	details := parse(called(t, "containerlab", "inspect", "-r", "docker", "--all", "--details", "--format", "json")).(object)["demo"].([]any)
	first := details[0].(object)
	labels := first["Labels"].(object)
	want := object{"IPv4addr": "172.20.20.11", "IPv4pLen": 24.0, "IPv4Gw": "172.20.20.1", "IPv6addr": "3fff:172:20:20::11", "IPv6pLen": 64.0, "IPv6Gw": ""}
	if len(details) != 2 || first["Names"].([]any)[0] != "clab-demo-R1" || first["ShortID"] != "00"+idR1[2:12] || first["Image"] != "alpine:3" || first["State"] != "running" ||
		first["Status"] != "Up 20m (healthy)" || labels["clab-node-kind"] != "linux" || labels["clab-node-longname"] != "clab-demo-R1" || first["Ports"] == nil || !cmp.Equal(first["NetworkSettings"], want) {
		t.Errorf("inspect --details: %v", details)
	}
	rows := parse(called(t, "clab", "inspect", "--name", "demo", "-f", "json")).(object)["demo"].([]any)
	if row := rows[0].(object); row["name"] != "clab-demo-R1" || row["container_id"] != "00"+idR1[2:12] || row["ipv4_address"] != "172.20.20.11/24" || row["state"] != "running" || row["kind"] != "linux" {
		t.Errorf("inspect: %v", row)
	}
	if text := called(t, "containerlab", "inspect", "-a"); !strings.Contains(text, "│ clab-demo-R2 │ linux      │ exited  │ 172.20.20.12") {
		t.Errorf("inspect as a table: %s", text)
	}
	netem := parse(called(t, "containerlab", "tools", "-r", "docker", "netem", "show", "-n", "clab-demo-R1", "--format", "json"))
	if want := (object{"clab-demo-R1": []any{object{"interface": "eth1 (ge-0/0/0)", "delay": "5ms", "jitter": "", "packet_loss": 0.1, "rate": 0.0, "corruption": 0.0}}}); !cmp.Equal(netem, any(want)) {
		t.Errorf("netem show: %v", netem)
	}
	for line, want := range map[string]string{
		"tools sshx list -f json":  "[]\n",
		"tools gotty list -f json": "[]\n",
		"version --short":          "0.79.0\n",
	} {
		if got := called(t, append([]string{"containerlab"}, strings.Fields(line)...)...); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
	if text := called(t, "containerlab", "version", "check"); !strings.Contains(text, "latest version (0.79.0)") {
		t.Errorf("version check: %s", text)
	}
}

// What it cannot do it says.
func TestContainerlabRejects(t *testing.T) {
	newFakeCluster(t)
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"deploy -r docker -t x.clab.yml --node-filter R1", "--node-filter: c9s can only deploy whole labs", 1},
		{"deploy --name other -t x.clab.yml", "--name: c9s takes the lab's name from the topology", 1},
		{"destroy --all", "add --yes", 1},
		{"generate --name x", "generate: c9s does not answer this in place of containerlab; it has deploy", 1},
		{"tools veth create", "veth: c9s does not answer this", 1},
		{"tools sshx attach", "use 'c9s ssh'", 1},
		{"graph -t x.clab.yml", "use 'c9s graph -o html'", 1},
		{"exec --name demo", "--cmd is missing", 2},
		{"tools netem set -n clab-demo-R1", "name the node with -n and the interface with -i", 2},
		{"tools netem set -n clab-demo-R1 -i eth1 --jitter 5ms", "--jitter needs --delay", 2},
		{"stop --name demo --node R9", "no node R9 in the lab", 1},
		{"inspect --name nothing", `lab nothing is not in the cluster`, 1},
	} {
		_, errs, code := run(t, Arguments(append([]string{"containerlab"}, strings.Fields(c.line)...))...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("containerlab %s: exit code %d: %s, want %d: %s", c.line, code, errs, c.code, c.want)
		}
	}
}

// The flags of the lab are c9s' own.
func TestContainerlabArguments(t *testing.T) {
	for want, f := range map[string]clab{
		"--topo a.clab.yml": {topo: "a.clab.yml"},
		"demo":              {name: "demo"},
		"":                  {},
		"--topo a.clab.yml --vars v.yml --timeout 2m0s": {topo: "a.clab.yml", vars: []string{"v.yml"}, timeout: 2 * time.Minute},
	} {
		if got := strings.Join(f.arguments(), " "); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
	nodes := []cluster.Node{{Name: "R1", Deployment: "r1", Containers: []string{"r1"}}, {Name: "R2", Deployment: "r2", Containers: []string{"r2"}}}
	for _, c := range []struct{ names, want string }{{"", "R1 R2"}, {"R2", "R2"}, {"clab-demo-R1 r2", "R1 R2"}} {
		got, err := shortNames(nodes, "demo", strings.Fields(c.names))
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q, %v", c.names, got, err)
		}
	}
}

func TestPathsOfCp(t *testing.T) {
	for text, want := range map[string][2]string{
		"R1:/etc/hosts": {"R1", "/etc/hosts"}, "SR1/A:x": {"SR1/A", "x"}, "./a:b": {"", "./a:b"}, "/a:b": {"", "/a:b"}, "a": {"", "a"}, "-": {"", "-"},
	} {
		if node, file := splitPath(text); [2]string{node, file} != want {
			t.Errorf("%s: %q %q", text, node, file)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{packArguments("/etc/frr/", true), "pack --name frr --follow -- /etc/frr"},
		{packArguments("/etc/.", false), "pack --name etc -- /etc"},
		{packArguments("/", false), "pack --name root -- /"},
	} {
		if got := strings.Join(c.args, " "); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// A template that docker knows by its fields or by the keys of its JSON.
func TestTemplates(t *testing.T) {
	type value struct {
		ID   string `json:"Id"`
		List []string
	}
	for format, want := range map[string]string{
		"{{.ID}} {{.Id}}":                "x x\n",
		`{{join .List ","}}`:             "a,b\n",
		`{{json .List}}`:                 "[\"a\",\"b\"]\n",
		"json":                           "{\"Id\":\"x\",\"List\":[\"a\",\"b\"]}\n",
		`{{upper .ID}}\t{{pad .ID 1 0}}`: "X\t x\n",
	} {
		var out bytes.Buffer
		err := printTemplate(&out, format, []any{value{"x", []string{"a", "b"}}}, nil)
		if format == "{{.ID}} {{.Id}}" { // neither has both
			if err == nil {
				t.Errorf("%s: %s", format, out.String())
			}
			continue
		}
		if err != nil || out.String() != want {
			t.Errorf("%s: %q, %v, want %q", format, out.String(), err, want)
		}
	}
}
