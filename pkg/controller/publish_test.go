package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

// converged is a publisher that has written the lab as it is.
func converged(t *testing.T, all []*corev1.Pod) (*publisher, *fake.Clientset) {
	t.Helper()
	client := cluster(t, all)
	p := newPublisher(client, namespace, quiet())
	if err := p.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	round(t, p, labOf(all), all)
	if got := writes(client); !slices.Equal(got, []string{"patch configmaps/c9s-addresses", "patch configmaps/c9s-status"}) {
		t.Fatalf("the first round writes %v", got)
	}
	return p, client
}

func TestConvergedLabWritesNothing(t *testing.T) {
	all := pods()
	p, client := converged(t, all)
	l := labOf(all)
	l.Links[0].RTT, l.Links[0].TxBytes, l.Links[0].Drops = 3, 1000, 2 // counters are no state
	round(t, p, l, all)
	if got := writes(client); len(got) != 0 {
		t.Errorf("the second round writes %v", got)
	}
	// Nor does a new leader, which reads what the old one wrote.
	next := newPublisher(client, namespace, quiet())
	if err := next.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	round(t, next, labOf(all), all)
	if got := writes(client); len(got) != 0 {
		t.Errorf("a new leader writes %v", got)
	}
}

func TestAddressChange(t *testing.T) {
	move := func(p *corev1.Pod, ip string) { p.Status.PodIP, p.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}} }
	for name, c := range map[string]struct {
		change func([]*corev1.Pod) []*corev1.Pod
		want   []string
	}{
		"one moves": {func(all []*corev1.Pod) []*corev1.Pod { move(all[1], "10.0.0.99"); return all },
			[]string{"patch configmaps/c9s-addresses", "patch pods/status/r1-1", "patch pods/status/r3-1"}},
		"the last one moves": {func(all []*corev1.Pod) []*corev1.Pod { move(all[3], "10.0.0.99"); return all },
			[]string{"patch configmaps/c9s-addresses", "patch pods/status/r3-1"}},
		"two neighbours move": {func(all []*corev1.Pod) []*corev1.Pod {
			move(all[1], "10.0.0.99")
			move(all[2], "10.0.0.98")
			return all
		},
			[]string{"patch configmaps/c9s-addresses", "patch pods/status/r1-1", "patch pods/status/r4-1"}},
		"one has none for a moment": {func(all []*corev1.Pod) []*corev1.Pod { all[1].Status.PodIPs = nil; return all }, nil},
		"one is going":              {func(all []*corev1.Pod) []*corev1.Pod { all[1].DeletionTimestamp = new(metav1.Now()); return all }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, client := converged(t, pods())
			all := c.change(pods())
			for range 2 { // once, and not again
				round(t, p, labOf(pods()), all)
			}
			if got := writes(client); !slices.Equal(got, c.want) {
				t.Errorf("writes %v, want %v", got, c.want)
			}
		})
	}
}

func TestAddressesAsWritten(t *testing.T) {
	all := pods()
	all[0].Status.PodIPs = append(all[0].Status.PodIPs, corev1.PodIP{IP: "fd00::1"})
	_, client := converged(t, all)
	cm, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), contract.AddressesConfigMap, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var a contract.Addresses
	if err := json.Unmarshal([]byte(cm.Data[contract.AddressesFile]), &a); err != nil {
		t.Fatal(err)
	}
	if want := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}; !slices.Equal(a.Pods["r1"], want) || len(a.Pods) != len(names) || a.Version != contract.AddressesVersion {
		t.Errorf("addresses %+v", a)
	}
}

func TestStatusOnStateChangeOnly(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*status.Lab)
		want   bool
	}{
		"nothing":          {func(*status.Lab) {}, false},
		"round-trip time":  {func(l *status.Lab) { l.Links[0].RTT = 9 }, false},
		"bytes":            {func(l *status.Lab) { l.Links[0].RxBytes = 9 }, false},
		"a node's state":   {func(l *status.Lab) { l.Nodes[0].State = status.StateBooting }, true},
		"a node's reason":  {func(l *status.Lab) { l.Nodes[0].Reason = "r2 is not heard" }, true},
		"restarts":         {func(l *status.Lab) { l.Nodes[0].Restarts++ }, true},
		"another worker":   {func(l *status.Lab) { l.Nodes[0].Worker = "n9" }, true},
		"a failed command": {func(l *status.Lab) { l.Nodes[0].Commands = []status.Command{{Step: 1, ExitCode: 1}} }, true},
		"a good command":   {func(l *status.Lab) { l.Nodes[0].Commands = []status.Command{{Step: 1, User: true}} }, false},
		"datapath":         {func(l *status.Lab) { l.Links[0].Datapath = "vxlan" }, true},
		"carrier":          {func(l *status.Lab) { l.Links[0].A.Carrier = true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			all := pods()
			p, client := converged(t, all)
			l := labOf(all)
			c.change(&l)
			round(t, p, l, all)
			got := writes(client)
			if slices.Contains(got, "patch configmaps/c9s-status") != c.want {
				t.Errorf("writes %v", got)
			}
		})
	}
}

// A write that failed is tried again, and what was not written is not taken for
// written.
func TestFailedWrite(t *testing.T) {
	all := pods()
	client := cluster(t, all)
	p := newPublisher(client, namespace, quiet())
	if err := p.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	broken := true
	client.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return broken, nil, errors.New("etcd is away")
	})
	if err := p.publish(t.Context(), labOf(all), all); err == nil {
		t.Fatal("no error")
	}
	broken = false
	writes(client)
	round(t, p, labOf(all), all)
	if got := writes(client); len(got) != 2 {
		t.Errorf("writes %v", got)
	}
}

// Writes are apart, and nothing waits for that: Events go on meanwhile.
func TestWritesAreApart(t *testing.T) {
	all := pods()
	p, client := converged(t, all)
	var later []time.Duration
	p.later = func(d time.Duration) { later = append(later, d) }
	p.statusWritten = time.Now()
	began := time.Now()
	if err := p.publish(t.Context(), *link(new(labOf(all)), false), all); err != nil {
		t.Fatal(err)
	}
	if got := writes(client); !slices.Equal(got, []string{"event LinkDown"}) || len(later) != 1 || later[0] > statusEvery {
		t.Errorf("writes %v, and the rest after %v", got, later)
	}
	if took := time.Since(began); took > statusEvery/2 {
		t.Errorf("it took %s", took)
	}
}

// A lab that flaps for ever writes so much and no more; nothing is lost: the last state
// is written as soon as there is room.
func TestWritesAreBounded(t *testing.T) {
	all := pods()
	p, client := converged(t, all)
	var later []time.Duration
	p.later = func(d time.Duration) { later = append(later, d) }
	for i := range 10 * statusBurst {
		l := labOf(all)
		l.Links[0].Up = i%2 == 1
		all[3].Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprintf("10.0.1.%d", i%2+1)}}
		round(t, p, l, all)
	}
	counts := map[string]int{}
	for _, w := range writes(client) {
		counts[w]++
	}
	const status, addresses = "patch configmaps/c9s-status", "patch configmaps/c9s-addresses"
	if n := counts[status]; n < statusBurst-1 || n > statusBurst+5 {
		t.Errorf("%d writes of the status", n)
	}
	if n := counts[addresses]; n < addressesBurst-1 || n > addressesBurst+10 {
		t.Errorf("%d writes of the addresses", n)
	}
	if len(later) == 0 || slices.Max(later) > statusRefill || slices.Min(later) <= 0 {
		t.Errorf("the rest is written after %v", later)
	}
	p.statusBudget.filled = p.statusBudget.filled.Add(-statusRefill)
	p.addressesBudget.filled = p.addressesBudget.filled.Add(-addressRefill)
	last := labOf(all)
	last.Links[0].Reason = "the last word"
	all[3].Status.PodIPs = []corev1.PodIP{{IP: "10.0.1.9"}}
	round(t, p, last, all)
	if got := writes(client); !slices.Contains(got, status) || !slices.Contains(got, addresses) {
		t.Errorf("when there is room it writes %v", got)
	}
}
