package doctor

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Sidecar containers (init containers that continue) are behind a feature gate in
// 1.28 and on by default from 1.29.
var (
	sidecarsAlpha = version.MustParseGeneric("1.28")
	sidecarsOn    = version.MustParseGeneric("1.29")
)

func checkVersion(f Facts, _ Needs) []Check {
	c := Check{Name: "API server", Result: OK, Found: "Kubernetes " + strings.TrimPrefix(f.Server.GitVersion, "v")}
	v, err := version.ParseGeneric(f.Server.GitVersion)
	switch {
	case err != nil:
		c.Result, c.Found, c.Remedy = Warning, fmt.Sprintf("its version %q is malformed", f.Server.GitVersion), "make sure that it is Kubernetes 1.29 or later"
	case v.AtLeast(sidecarsOn):
		c.Found += ", with sidecar containers"
	case f.Admission.Err == nil && f.Admission.Sidecars:
		c.Found += ", with sidecar containers by feature gate"
	case v.AtLeast(sidecarsAlpha):
		c.Result, c.Found = Problem, c.Found+", without sidecar containers"
		c.Remedy = "turn on the feature gate SidecarContainers of API server and kubelets, or upgrade to 1.29 or later"
	default:
		c.Result, c.Found = Problem, c.Found+", which has no sidecar containers"
		c.Remedy = "upgrade to 1.29 or later"
	}
	return []Check{c}
}
