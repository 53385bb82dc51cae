package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// The kubelet looks at a Pod's ConfigMaps every minute or so, and when the Pod changes. After
// an edit of links the controller annotates the Pods that have not got it yet. It gives a
// deploy, which does so too, syncAfter, and it tries again while a Pod still has not got the
// edit: its kubelet may not have heard of the new ConfigMap yet. After syncMost it gives up,
// since an overlay may give a Pod other links than the topology has for it.
const (
	syncAfter = 700 * time.Millisecond
	syncAgain = time.Second
	syncMost  = 30 * time.Second
)

// watchTopology watches the ConfigMap that has the digests of all links, and no other. edited
// is set, and poke called, after a change.
func (c *controller) watchTopology(ctx context.Context, poke func()) (edited *atomic.Bool, err error) {
	edited = &atomic.Bool{}
	factory := informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithNamespace(c.o.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, contract.TopologyName(0)).String()
		}))
	note := func() { edited.Store(true); poke() }
	_, err = factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { note() }, UpdateFunc: func(any, any) { note() },
	})
	if err == nil {
		factory.Start(ctx.Done())
	}
	return edited, err
}

// latePod is a Pod that has not got its links as they are now.
type latePod struct {
	pod    *corev1.Pod
	digest string // of the links that it is to get
}

// late returns the Pods whose sidecars report other links than the topology has for them. A
// sidecar that has applied no links yet reads them as it starts.
func (c *controller) late(pods []*corev1.Pod) []latePod {
	wanted := c.topology.Load().Pods
	answers := c.asker.answers(pods, time.Now())
	var out []latePod
	for _, p := range pods {
		name := p.Labels[contract.LabelPod]
		digest, has := wanted[name], answers[name].Status.Links
		if digest != "" && has != "" && has != digest && p.DeletionTimestamp == nil {
			out = append(out, latePod{p, digest})
		}
	}
	return out
}

// syncer makes the kubelet update the volumes of Pods.
type syncer struct {
	client kubernetes.Interface
	tries  map[string]*try // by the name of the Pod
}

// try is what was done about one edit of a Pod's links.
type try struct {
	digest string
	next   time.Time
	wait   time.Duration
}

func newSyncer(client kubernetes.Interface) *syncer {
	return &syncer{client: client, tries: map[string]*try{}}
}

// sync annotates the late Pods whose time has come, and returns when the next one's comes, 0
// for none.
func (s *syncer) sync(ctx context.Context, late []latePod, now time.Time) (wait time.Duration, err error) {
	old := s.tries
	s.tries = make(map[string]*try, len(late))
	for _, l := range late {
		t := old[l.pod.Name]
		if t == nil || t.digest != l.digest {
			t = &try{digest: l.digest, next: now.Add(syncAfter), wait: syncAgain}
		}
		s.tries[l.pod.Name] = t
		if t.wait > syncMost {
			continue
		}
		if !now.Before(t.next) {
			err = errors.Join(err, Touch(ctx, s.client, l.pod, fieldManager))
			t.next, t.wait = now.Add(t.wait), 2*t.wait
		}
		if until := t.next.Sub(now); wait == 0 || until < wait {
			wait = until
		}
	}
	return wait, err
}
