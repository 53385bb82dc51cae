package render

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// TestBootLimit: the sidecars of Pods with devices know the limit, if there is a controller.
func TestBootLimit(t *testing.T) {
	limits := func(noController bool) map[string]int {
		l := newTestLab("boot")
		l.BootPerWorker, l.opts.NoController = 4, noController
		l.node("r1", "linux")
		_, bridge := l.node("br", "bridge")
		bridge.Containers = nil
		out := map[string]int{}
		for _, o := range l.mustRender(t).Objects {
			c, ok := o.Object.(*corev1.ConfigMap)
			var m contract.Manifest
			if ok && c.Data[contract.ManifestFile] != "" && json.Unmarshal([]byte(c.Data[contract.ManifestFile]), &m) == nil {
				out[m.Pod] = m.BootPerWorker
			}
		}
		return out
	}
	if got := limits(false); got["r1"] != 4 || got["br"] != 0 || len(got) != 2 {
		t.Errorf("limits %v", got)
	}
	if got := limits(true); got["r1"] != 0 {
		t.Errorf("without a controller: %v", got)
	}
}
