package render

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// TestMachineDisk: with persistence, the disk of a virtual machine is on the claim, and the
// launcher finds the helper when it creates the disk.
func TestMachineDisk(t *testing.T) {
	for name, c := range map[string]struct {
		persistent, machine bool
		path, want          string
	}{
		"kept":               {true, true, "", "/c9s/bin:" + imagePath},
		"with a PATH":        {true, true, "/opt/bin:/bin", "/c9s/bin:/opt/bin:/bin"},
		"not kept":           {false, true, "", ""},
		"not kept, its PATH": {false, true, "/opt/bin", "/opt/bin"},
		"no machine":         {true, false, "", ""},
	} {
		l := newTestLab("disk")
		n, p := l.node("r1", "vendor")
		p.Needs.KVM = c.machine
		n.Policy.Persistence = &lab.Persistence{Enabled: c.persistent}
		if c.path != "" {
			p.Containers[0].Env = map[string]string{"PATH": c.path}
		}
		out := l.mustRender(t)
		kept := c.persistent && c.machine
		claim, linked := false, false
		var device corev1.Container
		for _, o := range out.Objects {
			switch o := o.Object.(type) {
			case *corev1.PersistentVolumeClaim:
				claim = true
			case *corev1.ConfigMap:
				var m contract.Manifest
				if text, ok := o.Data[contract.ManifestFile]; ok && json.Unmarshal([]byte(text), &m) == nil {
					linked = slices.ContainsFunc(m.Nodes[0].Containers[0].Payloads, func(e contract.Entry) bool {
						return e.Path == "bin/qemu-img" && e.Link == "../exec"
					})
				}
			}
		}
		device = deploymentOf(t, l, "r1").Spec.Template.Spec.Containers[0]
		mounted := slices.ContainsFunc(device.VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.MountPath == contract.DisksDir && m.Name == "data" && strings.HasSuffix(m.SubPath, "r1/disks")
		})
		got := ""
		for _, e := range device.Env {
			if e.Name == "PATH" {
				got = e.Value
			}
		}
		if got != c.want || claim != kept || linked != kept || mounted != kept {
			t.Errorf("%s: PATH %q, claim %v, helper %v, mount %v", name, got, claim, linked, mounted)
		}
	}
}
