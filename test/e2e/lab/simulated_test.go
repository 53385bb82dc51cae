package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// simulatedPods are the addresses that kwok gives to Pods.
const simulatedPods = "10.0.0.0/16"

// A torus is a lab of n nodes with two links each: to the next one (eth1 to eth2),
// and to the tenth after it (eth3 to eth4).
type torus int

const farther = 10

func (n torus) topology() string {
	var nodes, links strings.Builder
	for i := range int(n) {
		fmt.Fprintf(&nodes, "    n%d: {}\n", i)
		fmt.Fprintf(&links, "    - endpoints: [\"n%d:eth1\", \"n%d:eth2\"]\n", i, (i+1)%int(n))
		fmt.Fprintf(&links, "    - endpoints: [\"n%d:eth3\", \"n%d:eth4\"]\n", i, (i+farther)%int(n))
	}
	return fmt.Sprintf("name: scale\nmgmt: {ipv4-subnet: 172.20.0.0/16}\ntopology:\n  defaults: {kind: linux, image: %q}\n  nodes:\n%s  links:\n%s", goodImage, nodes.String(), links.String())
}

// end is the far end of a node's interface.
type end struct {
	node      int
	eth, peer string
}

func (n torus) ends(i int) []end {
	next, last := (i+1)%int(n), (i+int(n)-1)%int(n)
	far, near := (i+farther)%int(n), (i+int(n)-farther)%int(n)
	return []end{
		{next, "eth1", "eth2"}, {last, "eth2", "eth1"},
		{far, "eth3", "eth4"}, {near, "eth4", "eth3"},
	}
}

// sidecars answer for the Pods of simulated workers, which have none: every link
// is up, and every answer has other counters than the last. As real ones do, they hold an
// answer until there is news, at most for holdAnswer, and meanwhile send a space every second.
type sidecars struct {
	lab   torus
	asked atomic.Int64
	// silent and unplugged are nodes: whose sidecar does not answer, and whose
	// eth1 has no carrier.
	mu                sync.Mutex
	pods              map[netip.Addr]*corev1.Pod
	links             map[string]links // by Pod
	silent, unplugged map[int]bool
	said              map[string]string // what a Pod answered last, without counters
	changed           chan struct{}     // closed by the next change
}

const holdAnswer = 30 * time.Second

// links are the links of a Pod: their digest, and the wires' ids by interface.
type links struct {
	digest string
	wires  map[string]int
}

// readLinks reads the links in a ConfigMap.
func readLinks(cm *corev1.ConfigMap) links {
	text := []byte(cm.Data["links.json"])
	var read struct {
		Interfaces []struct {
			Name string
			Wire struct{ ID int }
		}
	}
	if err := json.Unmarshal(text, &read); err != nil {
		panic(err) // c9s has rendered it
	}
	sum := sha256.Sum256(text)
	out := links{hex.EncodeToString(sum[:8]), map[string]int{}}
	for _, in := range read.Interfaces {
		out.wires[in.Name] = in.Wire.ID
	}
	return out
}

// simulate answers for the Pods of a namespace until the test ends. The addresses
// of all simulated Pods are made the first worker's own.
func simulate(t *testing.T, c *testcluster.Cluster, namespace string, lab torus) *sidecars {
	t.Helper()
	s := &sidecars{lab: lab, pods: map[netip.Addr]*corev1.Pod{}, links: map[string]links{}, silent: map[int]bool{}, unplugged: map[int]bool{}, said: map[string]string{}, changed: make(chan struct{})}
	c.OnNode(t, c.Workers[0], "ip", "route", "replace", "local", simulatedPods, "dev", "lo")
	l := c.ListenOnWorker(t, 0, ":14802")
	server := &http.Server{Handler: s, ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, localKey{}, conn.LocalAddr())
	}}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	go s.watch(t.Context(), c, namespace)
	return s
}

type localKey struct{}

// follow does something with each object of a kind that is new or has changed.
func follow(ctx context.Context, objects func() (watch.Interface, error), each func(any)) {
	for ctx.Err() == nil {
		w, err := objects()
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		for e := range w.ResultChan() {
			each(e.Object)
		}
	}
}

// watch follows the Pods' addresses and links.
func (s *sidecars) watch(ctx context.Context, c *testcluster.Cluster, namespace string) {
	ofNodes := metav1.ListOptions{LabelSelector: "c9s.dev/component=node"}
	go follow(ctx, func() (watch.Interface, error) { return c.Typed.CoreV1().ConfigMaps(namespace).Watch(ctx, ofNodes) }, func(object any) {
		if cm, ok := object.(*corev1.ConfigMap); ok && cm.Data["links.json"] != "" {
			l := readLinks(cm)
			s.set(func() { s.links[cm.Labels["c9s.dev/pod"]] = l })
		}
	})
	follow(ctx, func() (watch.Interface, error) { return c.Typed.CoreV1().Pods(namespace).Watch(ctx, ofNodes) }, func(object any) {
		if pod, ok := object.(*corev1.Pod); ok {
			if a, err := netip.ParseAddr(pod.Status.PodIP); err == nil {
				s.mu.Lock() // no news for held answers: nothing that they say of a Pod changes
				s.pods[a] = pod
				s.mu.Unlock()
			}
		}
	})
}

// set changes what the sidecars say.
func (s *sidecars) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *sidecars) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked := s.asked.Add(1)
	local, err := netip.ParseAddrPort(r.Context().Value(localKey{}).(net.Addr).String())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	held := r.URL.Query().Get("since") != ""
	end, beat := time.NewTimer(holdAnswer), time.NewTicker(time.Second)
	defer end.Stop()
	defer beat.Stop()
	for {
		answer, silent, changed := s.look(local.Addr().Unmap(), asked, held)
		switch {
		case silent:
			<-r.Context().Done()
			return
		case answer != nil:
			w.Write(answer)
			return
		case !held:
			http.NotFound(w, r)
			return
		}
		for waiting := true; waiting; {
			select {
			case <-r.Context().Done():
				return
			case <-changed:
				waiting = false
			case <-end.C:
				held, waiting = false, false
			case <-beat.C:
				io.WriteString(w, " ")
				w.(http.Flusher).Flush()
			}
		}
	}
}

// look returns what the sidecar at an address answers, nil for a held answer without news or
// if there is no such sidecar, and a channel that is closed by the next change.
func (s *sidecars) look(at netip.Addr, asked int64, held bool) (answer []byte, silent bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod := s.pods[at]
	if pod == nil {
		return nil, false, s.changed
	}
	node, _ := strconv.Atoi(strings.TrimPrefix(pod.Labels["c9s.dev/pod"], "n"))
	if s.silent[node] {
		return nil, true, nil
	}
	still := string(s.status(pod, node, 0))
	if held && s.said[pod.Name] == still {
		return nil, false, s.changed
	}
	s.said[pod.Name] = still
	return s.status(pod, node, asked), false, nil
}

// status is what a sidecar would say of a node, with all that a real one says.
func (s *sidecars) status(pod *corev1.Pod, i int, count int64) []byte {
	type object = map[string]any
	started := pod.Status.StartTime.UTC()
	name := func(i int) string { return fmt.Sprintf("n%d", i) }
	var interfaces, wires []object
	for at, e := range s.lab.ends(i) {
		// eth1's far end is eth2 of the next node.
		up := !(e.eth == "eth1" && s.unplugged[i]) && !(e.eth == "eth2" && s.unplugged[e.node])
		reason := ""
		if !up {
			reason = "the far end is down"
		}
		wire := s.links[name(i)].wires[e.eth]
		leg := fmt.Sprintf("c9sl%d", wire)
		interfaces = append(interfaces, object{
			"node": name(i), "name": e.eth, "kind": "wire", "wire": wire, "peerNode": name(e.node), "peerInterface": e.peer,
			"state": "made", "linux": e.eth, "index": at + 4, "up": true, "carrier": up, "mac": fmt.Sprintf("aa:c1:ab:%02x:%02x:%02x", wire>>16, wire>>8&0xff, wire&0xff),
			"mtu": 9500, "leg": leg,
		})
		wires = append(wires, object{
			"id": wire, "peerPod": name(e.node), "peer": "10.0.0.1:14800", "peerEpoch": started.UnixNano(), "leg": leg, "up": up, "reason": reason,
			"since": started, "localCarrier": true, "remoteCarrier": up, "datapath": "udp", "remoteDatapath": "udp",
			"why": "the frames of this link do not fit the Pod network's MTU", "rttMs": 0.2 + float64(count%100)/1000, "loss": 0, "pathMtu": 1500,
			"txFrames": count, "txBytes": 100 * count, "rxFrames": count, "rxBytes": 100 * count, "drops": object{"too-big": 1},
		})
	}
	data, err := json.Marshal(object{
		"version": "c9s.dev/status/v1", "sidecar": "e2e", "lab": "scale", "pod": name(i), "podName": pod.Name, "namespace": pod.Namespace,
		"worker": pod.Spec.NodeName, "addresses": []string{pod.Status.PodIP}, "started": started, "startup": true, "ready": true,
		"links":      s.links[name(i)].digest,
		"mgmt":       object{"interface": "eth0", "ipv4": "172.20.20.2/16", "ipv6": "3fff:172:20:20::2/64", "made": true},
		"interfaces": interfaces,
		"fabric":     object{"pod": name(i), "epoch": started.UnixNano(), "mode": "authenticated", "underlayMtu": 1500, "segmentation": true, "wires": wires},
	})
	if err != nil {
		panic(err) // maps of plain values
	}
	return data
}
