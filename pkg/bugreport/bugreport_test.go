package bugreport

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// planted are the secrets of the test's lab.
var planted = []string{
	"Pl4nted-env-0", "Pl4nted-arg-1", "Pl4nted-arg-2", "Pl4nted-file-3", "Pl4nted-annotation-4", "Pl4nted-secret-5", "Pl4nted-event-6", "Pl4nted-binary-7", "Pl4nted-probe-8", "Pl4nted-label-9",
}

// TestNoSecrets: nothing that was planted in a lab's objects is in the archive, and what a bug
// report needs is.
func TestNoSecrets(t *testing.T) {
	labels := map[string]string{contract.LabelLab: "demo"}
	object := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "lab", Labels: labels, Annotations: map[string]string{
			contract.AnnotationNodeName: "R1", contract.AnnotationTopologyLabels: `{"R1":{"note":"Pl4nted-label-9"}}`, "example.org/login": "Pl4nted-annotation-4",
		}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "c9s"}}}
	}
	spec := corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: contract.WireContainer, Env: []corev1.EnvVar{{Name: "LAB", Value: "demo"}}, Args: []string{"wire"}}},
		Containers: []corev1.Container{{
			Name: "r1", Image: "example.org/router:1", Env: []corev1.EnvVar{{Name: "ADMIN_PASSWORD", Value: "Pl4nted-env-0"}},
			Args:          []string{"--password", "Pl4nted-arg-1", "--api-token=Pl4nted-arg-2", "--vcpu", "4"},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"login", "Pl4nted-probe-8"}}}},
		}},
	}
	pod := &corev1.Pod{ObjectMeta: object("r1-abc"), Spec: spec, Status: corev1.PodStatus{
		InitContainerStatuses: []corev1.ContainerStatus{{Name: contract.WireContainer, RestartCount: 1}}, ContainerStatuses: []corev1.ContainerStatus{{Name: "r1"}},
	}}
	client := fake.NewClientset(
		pod,
		&appsv1.Deployment{ObjectMeta: object("r1"), Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: object(""), Spec: *spec.DeepCopy()}}},
		&corev1.ConfigMap{ObjectMeta: object("r1-files"), Data: map[string]string{"startup-config": "username admin secret Pl4nted-file-3"}, BinaryData: map[string][]byte{"nvram": []byte("Pl4nted-binary-7")}},
		&corev1.ConfigMap{ObjectMeta: object("r1-links"), Data: map[string]string{contract.LinksFile: `{"interfaces":[{"node":"R1","name":"eth1"}]}`}},
		&corev1.Secret{ObjectMeta: object("c9s-wire-key"), Data: map[string][]byte{"key": []byte("Pl4nted-secret-5")}},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "lab"}, Reason: "BackOff", Message: "pull of https://me:Pl4nted-event-6@example.org failed, and Pl4nted-env-0 too", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "r1-abc"}},
	)
	c := Collector{Client: client, Namespace: "lab", Lab: "demo", Lines: 10, Devices: true}
	files := c.Collect(t.Context())
	var archive bytes.Buffer
	if err := Write(&archive, "c9s-demo", files, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(&archive)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	all := ""
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		all += string(data)
		for _, secret := range planted {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s has %s:\n%s", h.Name, secret, data)
			}
		}
		if !strings.HasPrefix(h.Name, "c9s-demo/") || path.Clean(h.Name) != h.Name {
			t.Errorf("a file is called %q", h.Name)
		}
	}
	for _, want := range []string{"objects/pods/r1-abc.yaml", "objects/deployments/r1.yaml", "objects/configmaps/r1-links.yaml", "events.txt", "logs/r1-abc-r1.log", "logs/r1-abc-" + contract.WireContainer + "-previous.log"} {
		if !slices.Contains(names, "c9s-demo/"+want) {
			t.Errorf("the archive lacks %s; it has %v", want, names)
		}
	}
	for _, want := range []string{"example.org/router:1", "ADMIN_PASSWORD", `"name":"eth1"`, "BackOff", "[5 words removed]", "value: demo", contract.AnnotationNodeName + ": R1"} {
		if !strings.Contains(all, want) {
			t.Errorf("the archive lacks %q", want)
		}
	}
	for _, a := range client.Actions() {
		if a.GetResource().Resource == "secrets" {
			t.Errorf("Secrets are read: %v", a)
		}
	}
}

// TestClean: what looks like a secret is removed from logs, and the rest stays.
func TestClean(t *testing.T) {
	var s Scrubber
	s.Note("TOKEN", "tok")
	s.Note("ROOT_PASSWORD", "hunter2 and more")
	s.Note("vcpu", "four")
	for text, want := range map[string]string{
		"login with hunter2 and more":                                                "login with [removed]",
		"four tok tokens":                                                            "four tok tokens",
		"password: abcdef, user: me":                                                 "password: [removed], user: me",
		`{"password":"abcdef","user":"me"}`:                                          `{"password":"[removed]","user":"me"}`,
		"username admin secret 9 $14$AbC/xyz":                                        "username admin secret 9 [removed]",
		"snmp-server community public RO":                                            "snmp-server community [removed] RO",
		"neighbor 10.0.0.1 password 7 094F471A1A0A":                                  "neighbor 10.0.0.1 password 7 [removed]",
		"root:$6$salt$hash:19000":                                                    "root:[removed]",
		"git clone https://me:pass@example.org/x":                                    "git clone https://me:[removed]example.org/x",
		"Authorization: Bearer abcdefgh12345":                                        "Authorization: Bearer [removed]",
		"token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc":                         "token [removed]",
		"a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb": "a\n[removed]\nb",
		"-----BEGIN PRIVATE KEY-----\nMIIE":                                          "[removed]",
		"R1:eth1 is up, path MTU 1450":                                               "R1:eth1 is up, path MTU 1450",
		"https://example.org:8080/path":                                              "https://example.org:8080/path",
	} {
		if got := string(s.Clean([]byte(text))); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
