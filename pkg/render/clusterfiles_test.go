package render

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/apicheck"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// TestClusterFiles: the Pod mounts files of the namespace, single ones by their keys, and the
// manifest says that their digests are unknown.
func TestClusterFiles(t *testing.T) {
	l := newTestLab("files")
	n, _ := l.node("r1", "linux")
	n.Policy.Files = []lab.ClusterFile{
		{Path: "/etc/token", Secret: "tokens", Key: "r1.token", Mode: 0o444},
		{Path: "/opt/run.sh", ConfigMap: "scripts", Key: "run", Mode: 0o555},
		{Path: "/etc/conf.d", ConfigMap: "scripts", Mode: 0o444},
	}
	spec := deploymentOf(t, l, "r1").Spec.Template.Spec
	volumes := map[string]corev1.Volume{}
	for _, v := range spec.Volumes {
		volumes[v.Name] = v
	}
	got := map[string]string{}
	for _, m := range spec.Containers[0].VolumeMounts {
		v := volumes[m.Name]
		if s := v.Secret; s != nil {
			got[m.MountPath] = strings.Join([]string{s.SecretName, m.SubPath, s.Items[0].Key, contract.Mode(*s.DefaultMode).String()}, " ")
		}
		if c := v.ConfigMap; c != nil {
			key := ""
			if len(c.Items) > 0 {
				key = c.Items[0].Key
			}
			got[m.MountPath] = strings.Join([]string{c.Name, m.SubPath, key, contract.Mode(*c.DefaultMode).String()}, " ")
		}
		if (v.Secret != nil || v.ConfigMap != nil) && !m.ReadOnly {
			t.Errorf("%s is writable", m.MountPath)
		}
	}
	for path, want := range map[string]string{
		"/etc/token": "tokens r1.token r1.token 0444", "/opt/run.sh": "scripts run run 0555", "/etc/conf.d": "scripts   0444",
	} {
		if got[path] != want {
			t.Errorf("%s: %q, want %q", path, got[path], want)
		}
	}
	found := false
	for _, o := range l.mustRender(t).Objects {
		c, ok := o.Object.(*corev1.ConfigMap)
		if !ok || c.Data[contract.ManifestFile] == "" {
			continue
		}
		var m contract.Manifest
		if err := json.Unmarshal([]byte(c.Data[contract.ManifestFile]), &m); err != nil {
			t.Fatal(err)
		}
		for _, e := range m.Nodes[0].External {
			found = found || e.Path == "/etc/token" && e.Secret == "tokens" && e.Digest == contract.DigestUnknown
		}
	}
	if !found {
		t.Error("the manifest does not list the file")
	}
}

// TestClusterFileInTheWay: two things at one path are an error.
func TestClusterFileInTheWay(t *testing.T) {
	l := newTestLab("files")
	n, p := l.node("r1", "linux")
	p.Containers[0].Mounts = append(p.Containers[0].Mounts, plan.Mount{Target: "/etc/token", HostPath: "/x"})
	n.Policy.Files = []lab.ClusterFile{{Path: "/etc/token", Secret: "tokens", Key: "a", Mode: 0o444}}
	_, diags := l.render(t)
	for _, d := range diags {
		if d.Code == apicheck.CodeMountPath && strings.Contains(d.Message, "/etc/token") {
			return
		}
	}
	t.Errorf("no error: %v", diags)
}
