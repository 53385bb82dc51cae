// Package addons are what runs in the cluster from the start.
package addons

import (
	"fmt"
	"strings"

	"github.com/c9s-lab/c9s/test/cluster/internal/images"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

// DNS is the name and namespace of CoreDNS.
const (
	DNSNamespace = "kube-system"
	DNSName      = "coredns"
)

// CoreDNS is the manifest of the cluster's DNS. Names outside the cluster do not
// resolve: Pods reach nothing there either.
func CoreDNS(c site.Cluster) []byte {
	return []byte(strings.NewReplacer(
		"IMAGE", images.CoreDNSReference,
		"CLUSTER_IP", c.DNSService().String(),
	).Replace(corednsYAML))
}

const corednsYAML = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: system:coredns}
rules:
- {apiGroups: [""], resources: [endpoints, services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: system:coredns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:coredns}
subjects: [{kind: ServiceAccount, name: coredns, namespace: kube-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        errors
        health {
            lameduck 1s
        }
        ready
        kubernetes cluster.local in-addr.arpa ip6.arpa {
            pods insecure
            fallthrough in-addr.arpa ip6.arpa
            ttl 5
        }
        cache 5
        reload
        loadbalance
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  replicas: 1
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      priorityClassName: system-cluster-critical
      serviceAccountName: coredns
      dnsPolicy: Default
      tolerations:
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
      containers:
      - name: coredns
        image: IMAGE
        args: [-conf, /etc/coredns/Corefile]
        ports:
        - {containerPort: 53, name: dns, protocol: UDP}
        - {containerPort: 53, name: dns-tcp, protocol: TCP}
        readinessProbe: {httpGet: {path: /ready, port: 8181}, periodSeconds: 1}
        volumeMounts: [{name: config, mountPath: /etc/coredns}]
      volumes: [{name: config, configMap: {name: coredns}}]
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  clusterIP: CLUSTER_IP
  selector: {k8s-app: kube-dns}
  ports:
  - {name: dns, port: 53, protocol: UDP}
  - {name: dns-tcp, port: 53, protocol: TCP}
`

// FakeNode is the manifest of a simulated worker. Its taint keeps away every Pod
// that does not ask for one.
func FakeNode(number int) []byte {
	name := fmt.Sprintf("fake-%d", number)
	return []byte(strings.ReplaceAll(`apiVersion: v1
kind: Node
metadata:
  name: NAME
  annotations: {kwok.x-k8s.io/node: fake}
  labels: {kubernetes.io/hostname: NAME, kubernetes.io/os: linux, kubernetes.io/arch: amd64, type: kwok}
spec:
  taints: [{key: kwok.x-k8s.io/node, value: fake, effect: NoSchedule}]
`, "NAME", name))
}
