package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/c9s-lab/c9s/internal/foreign"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

// fieldManager is the controller's name in metadata.managedFields.
const fieldManager = "c9s-controller"

// AnnotationSynced makes the kubelet look at a Pod's volumes at once: any change
// of a Pod does.
const AnnotationSynced = "c9s.dev/synced"

// How often the controller writes at most: the time between two writes, and the budget.
// What the budget has no room for is written, as it is by then, when there is room.
const (
	statusEvery    = 2 * time.Second
	statusBurst    = 60
	statusRefill   = 30 * time.Second
	addressesEvery = time.Second
	addressesBurst = 120
	addressRefill  = 5 * time.Second
)

// publisher writes what is new, and remembers what it wrote.
type publisher struct {
	client    kubernetes.Interface
	namespace string
	log       *slog.Logger

	statusShape   string
	statusWritten time.Time
	addresses     map[string][]netip.Addr
	written       time.Time
	events        *eventWriter

	statusBudget, addressesBudget *budget
	// later is called where something is to be published later.
	later func(time.Duration)
}

func newPublisher(client kubernetes.Interface, namespace string, log *slog.Logger) *publisher {
	return &publisher{
		client: client, namespace: namespace, log: log, events: newEventWriter(client, namespace),
		statusBudget: newBudget(statusBurst, statusRefill), addressesBudget: newBudget(addressesBurst, addressRefill),
		later: func(time.Duration) {},
	}
}

// load reads what an earlier leader wrote, so that a new one does not write it
// again.
func (p *publisher) load(ctx context.Context) error {
	maps := p.client.CoreV1().ConfigMaps(p.namespace)
	cm, err := maps.Get(ctx, contract.AddressesConfigMap, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", contract.AddressesConfigMap, err)
	}
	var a contract.Addresses
	if foreign.JSON([]byte(cm.Data[contract.AddressesFile]), foreign.MaxElements, &a) == nil {
		p.addresses = a.Pods
	}
	cm, err = maps.Get(ctx, contract.StatusConfigMap, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", contract.StatusConfigMap, err)
	}
	if l, err := status.Stored(cm); err == nil {
		p.statusShape = shape(l)
		p.events.know(l)
	}
	return nil
}

// publish writes the addresses, the status and events, as far as they are new.
func (p *publisher) publish(ctx context.Context, l status.Lab, pods []*corev1.Pod) error {
	// Events wait for nothing: the other two keep their writes apart.
	return errors.Join(p.events.tell(ctx, l), p.publishAddresses(ctx, l, pods), p.publishStatus(ctx, l))
}

// publishAddresses keeps the Pods' addresses in the directory. Pods whose
// neighbour has moved are touched, so that they see it before its hello fails.
func (p *publisher) publishAddresses(ctx context.Context, l status.Lab, pods []*corev1.Pod) error {
	now := map[string][]netip.Addr{}
	names := map[string]*corev1.Pod{}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		name := pod.Labels[contract.LabelPod]
		for _, ip := range pod.Status.PodIPs {
			if a, err := netip.ParseAddr(ip.IP); err == nil {
				now[name] = append(now[name], a)
			}
		}
		names[name] = pod
	}
	inLab := map[string]bool{}
	for _, n := range l.Nodes {
		inLab[n.Pod] = true
	}
	// A Pod that is away for a moment keeps its address until it has another.
	moved := map[string]bool{}
	for name, old := range p.addresses {
		switch {
		case len(now[name]) == 0 && inLab[name]:
			now[name] = old
		case !slices.Equal(now[name], old):
			moved[name] = true
		}
	}
	if same(now, p.addresses) {
		return nil
	}
	if wait := wait(p.written, addressesEvery, p.addressesBudget); wait > 0 {
		p.later(wait)
		return nil
	}
	text, err := json.Marshal(contract.Addresses{Version: contract.AddressesVersion, Pods: now})
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{contract.AddressesFile: string(text)}})
	if err != nil {
		return err
	}
	if err := p.patch(ctx, contract.AddressesConfigMap, patch); err != nil {
		p.addressesBudget.giveBack()
		return err
	}
	p.addresses, p.written = now, time.Now()
	if len(moved) == 0 {
		return nil
	}
	var errs []error
	for _, name := range neighbours(l, moved) {
		if pod := names[name]; pod != nil {
			errs = append(errs, p.touch(ctx, pod))
		}
	}
	return errors.Join(errs...)
}

func same(a, b map[string][]netip.Addr) bool {
	if len(a) != len(b) {
		return false
	}
	for name, list := range a {
		if !slices.Equal(list, b[name]) {
			return false
		}
	}
	return true
}

// neighbours are the Pods with a link to one that has moved.
func neighbours(l status.Lab, moved map[string]bool) []string {
	pod := map[string]string{}
	for _, n := range l.Nodes {
		pod[n.Name] = n.Pod
	}
	var out []string
	for _, k := range l.Links {
		a, b := pod[k.A.Node], pod[k.B.Node]
		if moved[a] && b != "" && !moved[b] {
			out = append(out, b)
		}
		if moved[b] && a != "" && !moved[a] {
			out = append(out, a)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (p *publisher) touch(ctx context.Context, pod *corev1.Pod) error {
	return Touch(ctx, p.client, pod, fieldManager)
}

// Touch makes the kubelet look at a Pod's volumes at once. It patches the Pod's status:
// an annotation gets through, while who may patch a Pod itself may change the image of a
// privileged container. A Pod that is gone does not need it any more.
func Touch(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, fieldManager string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, AnnotationSynced, time.Now().UTC().Format(time.RFC3339Nano))
	_, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// publishStatus writes the status when a state has changed. Figures alone are not worth a
// write: who wants them asks the controller.
func (p *publisher) publishStatus(ctx context.Context, l status.Lab) error {
	s := shape(l)
	if s == p.statusShape {
		return nil
	}
	if wait := wait(p.statusWritten, statusEvery, p.statusBudget); wait > 0 {
		p.later(wait)
		return nil
	}
	patch, err := l.Patch()
	if err != nil {
		return err
	}
	if err := p.patch(ctx, contract.StatusConfigMap, patch); err != nil {
		p.statusBudget.giveBack()
		return err
	}
	p.statusShape, p.statusWritten = s, time.Now()
	return nil
}

// wait is how long a write has to wait: writes are some time apart, and within a budget.
func wait(last time.Time, every time.Duration, b *budget) time.Duration {
	if apart := every - time.Since(last); apart > 0 {
		return apart
	}
	return b.take()
}

// shape is what of a status is worth a write.
func shape(l status.Lab) string {
	var b strings.Builder
	fmt.Fprint(&b, l.State)
	for _, n := range l.Nodes {
		fmt.Fprintln(&b, n.Name, n.State, n.Reason, n.Restarts, n.Worker, n.PodName, len(n.Unfinished()))
	}
	for _, k := range l.Links {
		fmt.Fprintln(&b, k.ID, k.A, k.B, k.Up, k.Reason, k.Datapath)
	}
	return b.String()
}

func (p *publisher) patch(ctx context.Context, name string, patch []byte) error {
	_, err := p.client.CoreV1().ConfigMaps(p.namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s: %w", name, err)
	}
	return nil
}
