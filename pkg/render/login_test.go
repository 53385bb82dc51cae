package render

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// TestSSHProbe: the password is in a Secret only, and the helper asks the sidecar to log in.
func TestSSHProbe(t *testing.T) {
	l := newTestLab("login")
	r1, p1 := l.node("r1", "linux")
	r1.Policy.SSH = &lab.SSHProbe{Port: 22, Username: "admin", Password: "very-secret"}
	p1.Readiness = &plan.Readiness{Healthcheck: lab.Healthcheck{Test: []string{"CMD", "test", "-e", "/x"}}}
	r2, _ := l.node("r2", "linux")
	r2.Policy.SSH = &lab.SSHProbe{Port: 2022, Username: "u", Secret: "logins", Key: "r2"}
	probes, logins, secrets := map[string]string{}, map[string]*contract.SSHLogin{}, map[string]bool{}
	for _, o := range l.mustRender(t).Objects {
		data, err := o.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if !manifest.IsSecret(o.Object) && strings.Contains(string(data), "very-secret") {
			t.Errorf("%s has the password: %s", o.Kind(), data)
		}
		switch o := o.Object.(type) {
		case *corev1.Secret:
			for key, value := range o.Data {
				secrets[key] = string(value) == "very-secret"
			}
		case *corev1.ConfigMap:
			var m contract.Manifest
			if text := o.Data[contract.ManifestFile]; text != "" && json.Unmarshal([]byte(text), &m) == nil {
				logins[m.Pod] = m.Nodes[0].Login
			}
		case *appsv1.Deployment:
			spec := o.Spec.Template.Spec
			if len(spec.InitContainers) == 0 || spec.Containers[0].ReadinessProbe == nil {
				continue
			}
			c, wire := spec.Containers[0], spec.InitContainers[0]
			text := strings.Join(c.ReadinessProbe.Exec.Command, " ")
			for _, m := range c.VolumeMounts {
				if m.MountPath == contract.HelperDir {
					text += " helper"
				}
			}
			for _, m := range wire.VolumeMounts {
				if strings.HasPrefix(m.MountPath, contract.LoginDir) || m.MountPath == contract.FilesDir {
					text += " " + m.MountPath
				}
			}
			probes[o.Name] = text
		}
	}
	if got := probes["r1"]; got != "/c9s/exec login r1 -- test -e /x helper /etc/c9s/files" {
		t.Errorf("r1: %s", got)
	}
	if got := probes["r2"]; got != "/c9s/exec login r2 helper /etc/c9s/login/r2" {
		t.Errorf("r2: %s", got)
	}
	login := logins["r1"]
	if login == nil || login.Port != 22 || login.Username != "admin" || path.Dir(login.PasswordFile) != contract.FilesDir || !secrets[path.Base(login.PasswordFile)] {
		t.Errorf("r1 logs in with %+v, Secrets have %v", login, secrets)
	}
	if login := logins["r2"]; login == nil || *login != (contract.SSHLogin{Port: 2022, Username: "u", PasswordFile: "/etc/c9s/login/r2/r2"}) {
		t.Errorf("r2 logs in with %+v", login)
	}
	data, err := json.Marshal(l.Lab)
	if err != nil || strings.Contains(string(data), "very-secret") {
		t.Errorf("the lab's JSON has the password: %v", err)
	}
}

// TestSSHProbeWithoutSidecar: a node in the worker's network namespace has nothing to log in to.
func TestSSHProbeWithoutSidecar(t *testing.T) {
	l := newTestLab("login")
	n, _ := l.node("r1", "linux")
	n.NetworkMode = lab.NetworkHost
	n.Policy.SSH = &lab.SSHProbe{Port: 22, Username: "admin", Pos: diag.Pos{File: "c9s.yaml", Line: 4, Column: 9}}
	_, diags := l.render(t)
	if len(diags) != 1 || diags[0].String() != `c9s.yaml:4:9: error: node "r1" has no management address of its own that an SSH probe could log in to [host-network-unsupported]` {
		t.Errorf("%v", diags)
	}
}
