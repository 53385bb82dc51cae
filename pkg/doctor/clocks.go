package doctor

import (
	"fmt"
	"strings"
	"time"
)

// A kubelet renews its Lease every 10 s, and its worker counts as ready for at most 40 s
// (50 s from Kubernetes 1.32) without that: what is further off is the clock.
const (
	aheadAfter  = 15 * time.Second
	behindAfter = time.Minute
)

// checkClocks compares the workers' clocks with the API server's.
func checkClocks(f Facts, n Needs) []Check {
	var wrong []string
	for _, w := range landing(f, n) {
		renewed, ok := f.Clocks.Renewed[w.Name]
		if !ok || f.Clocks.Server.IsZero() {
			continue
		}
		switch off := renewed.Sub(f.Clocks.Server); {
		case off > aheadAfter:
			wrong = append(wrong, fmt.Sprintf("%s is about %s ahead", w.Name, off.Round(time.Second)))
		case off < -behindAfter:
			wrong = append(wrong, fmt.Sprintf("%s is about %s behind", w.Name, (-off).Round(time.Second)))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return []Check{{Name: "clocks", Result: Warning, Found: "beside the API server's clock, that of " + strings.Join(wrong, ", that of "),
		Remedy: "synchronize it (chrony, systemd-timesyncd): logs, certificates and routing protocols with timestamps depend on it; c9s' own links do not"}}
}
