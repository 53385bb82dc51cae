package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/probe"
)

// ComponentProbe is the LabelComponent of a probe's Pod.
const ComponentProbe = "probe"

// Prober runs a short-lived privileged Pod on each worker.
type Prober struct {
	Client    kubernetes.Interface
	Namespace string
	// Image is c9s' own.
	Image string
	// Timeout is for one worker, the pull of the image included.
	Timeout time.Duration
}

// How probes are run.
const (
	probesAtOnce = 16
	probeEvery   = 500 * time.Millisecond
	lastWord     = "/dev/termination-log"
	cleanupTime  = 20 * time.Second
)

// Probe probes workers that a lab may land on, and whether NetworkPolicies are enforced
// between them. A namespace that is not there is made for it, and removed again.
func (p Prober) Probe(ctx context.Context, f Facts, n Needs) (map[string]Probe, *Policies, error) {
	remove, err := p.namespace(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	defer remove()
	out := map[string]Probe{}
	workers := slices.DeleteFunc(landing(f, n), func(w *corev1.Node) bool { return RuntimeOf(w).Privileged == No })
	var mu sync.Mutex
	bounded.Each(len(workers), probesAtOnce, func(i int) {
		report, err := p.one(ctx, workers[i].Name)
		mu.Lock()
		defer mu.Unlock()
		out[workers[i].Name] = Probe{Report: report, Err: err}
	})
	return out, p.policies(ctx, workers), ctx.Err()
}

func (p Prober) namespace(ctx context.Context, f Facts) (remove func(), err error) {
	if !f.newNamespace() {
		return func() {}, nil
	}
	made, err := p.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   p.Namespace,
		Labels: map[string]string{podSecurity: "privileged", "app.kubernetes.io/managed-by": "c9s", contract.LabelComponent: ComponentProbe},
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating namespace %s for the probe: %w; use -n with an existing one", p.Namespace, err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		_ = p.Client.CoreV1().Namespaces().Delete(ctx, made.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID}})
		for ctx.Err() == nil { // a deploy that follows must not find it going
			if _, err := p.Client.CoreV1().Namespaces().Get(ctx, made.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
				return
			}
			time.Sleep(probeEvery)
		}
	}, nil
}

// one probes one worker.
func (p Prober) one(ctx context.Context, worker string) (report probe.Report, err error) {
	pod, err := p.start(ctx, p.pod(worker))
	if err != nil {
		return report, err
	}
	defer p.stop(ctx, pod)
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	_, err = p.until(ctx, pod, func(pod *corev1.Pod) (done bool, err error) {
		report, done, err = answer(pod)
		return done, err
	})
	return report, err
}

// answer reads a probe's Pod; done is false while it continues.
func answer(pod *corev1.Pod) (report probe.Report, done bool, err error) {
	word, done, err := lastWordOf(pod)
	if !done || err != nil {
		return report, done, err
	}
	if err := json.Unmarshal([]byte(word), &report); err != nil {
		return report, true, fmt.Errorf("the probe's answer cannot be read: %w", err)
	}
	if report.Version != probe.Version {
		return report, true, fmt.Errorf("the probe answers in %s, but this c9s reads %s: use an image of the same version", report.Version, probe.Version)
	}
	return report, true, nil
}

// lastWordOf returns what a Pod's one container left when it ended; done is false while
// it has not. The error says why there is nothing.
func lastWordOf(pod *corev1.Pod) (word string, done bool, err error) {
	for _, s := range pod.Status.ContainerStatuses {
		switch t := s.State.Terminated; {
		case t == nil:
		case t.ExitCode != 0:
			return "", true, fmt.Errorf("the probe exited with code %d (an image of another version?): %s", t.ExitCode, t.Message)
		default:
			return t.Message, true, nil
		}
	}
	if err := failure(pod); err != nil {
		return "", true, err
	}
	return "", false, nil
}

func (p Prober) pod(worker string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "c9s-probe-",
			Labels:       map[string]string{"app.kubernetes.io/managed-by": "c9s", contract.LabelComponent: ComponentProbe},
		},
		Spec: corev1.PodSpec{
			// By name: a worker that is full, or tainted, is looked at too.
			NodeName:                      worker,
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			TerminationGracePeriodSeconds: new(int64(1)),
			ActiveDeadlineSeconds:         new(int64(p.Timeout.Seconds()) + 1),
			Containers: []corev1.Container{{
				Name: "probe", Image: p.Image,
				Command:                  []string{"/c9s-sidecar", "probe", "--leave", lastWord},
				TerminationMessagePath:   lastWord,
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				SecurityContext:          &corev1.SecurityContext{Privileged: new(true), RunAsUser: new(int64(0))},
			}},
		},
	}
}
