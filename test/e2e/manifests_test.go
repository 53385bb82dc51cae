package e2e

import (
	"fmt"
	"strings"
)

// Images as public labs name them: the cluster's test images stand in.
const (
	hostImage = "ghcr.io/srl-labs/network-multitool:latest"
	frrImage  = "quay.io/frrouting/frr:10.2.1"
)

// onNode is a Pod that waits on one worker.
func onNode(name, node, image, command string) string {
	return strings.NewReplacer("NAME", name, "NODE", node, "IMAGE", image, "COMMAND", fmt.Sprintf("%q", command)).Replace(`
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: NAME}}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: IMAGE, command: [sh, -c, COMMAND], securityContext: {privileged: true}}
`)
}

const wait = "exec sleep infinity"
