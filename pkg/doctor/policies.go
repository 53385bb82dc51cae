package doctor

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
	"github.com/c9s-lab/c9s/sidecar/probe"
)

// labelTarget is on the Pods that are connected to.
const labelTarget = "c9s.dev/probe-target"

// targetPort is where those listen.
const targetPort = 14810

// policies finds out whether NetworkPolicies take effect: it closes a Pod by one, leaves
// another open, and lets a third, on another worker if there is one, connect to both. All
// that it makes is removed again.
func (p Prober) policies(ctx context.Context, workers []*corev1.Node) *Policies {
	if len(workers) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	reached, err := p.reach(ctx, workers[0].Name, workers[len(workers)-1].Name)
	switch {
	case err != nil:
		return &Policies{Err: err}
	case !reached.Open:
		return &Policies{Err: errors.New("a Pod without a NetworkPolicy was not reached either")}
	}
	return &Policies{Enforced: !reached.Closed}
}

func (p Prober) reach(ctx context.Context, server, client string) (probe.Reached, error) {
	var none probe.Reached
	run := strings.ToLower(rand.Text()[:8])
	closed := run + "-closed"
	policies := p.Client.NetworkingV1().NetworkPolicies(p.Namespace)
	policy, err := policies.Create(ctx, &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "c9s-probe-", Labels: map[string]string{"app.kubernetes.io/managed-by": "c9s", contract.LabelComponent: ComponentProbe}},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelTarget: closed}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return none, err
	}
	defer p.cleanUp(ctx, func(ctx context.Context) error { return policies.Delete(ctx, policy.Name, metav1.DeleteOptions{}) })
	var addresses []string
	for _, target := range []string{run + "-open", closed} {
		pod, err := p.start(ctx, p.plain(server, target, "serve", strconv.Itoa(targetPort)))
		if err != nil {
			return none, err
		}
		defer p.stop(ctx, pod)
		if pod, err = p.until(ctx, pod, func(pod *corev1.Pod) (bool, error) {
			return pod.Status.PodIP != "" && pod.Status.Phase == corev1.PodRunning, failure(pod)
		}); err != nil {
			return none, err
		}
		addresses = append(addresses, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(targetPort)))
	}
	pod, err := p.start(ctx, p.plain(client, run+"-client", append([]string{"reach", "--leave", lastWord}, addresses...)...))
	if err != nil {
		return none, err
	}
	defer p.stop(ctx, pod)
	var reached probe.Reached
	_, err = p.until(ctx, pod, func(pod *corev1.Pod) (done bool, err error) {
		word, done, err := lastWordOf(pod)
		if done && err == nil {
			if err = json.Unmarshal([]byte(word), &reached); err != nil || reached.Version != probe.ReachVersion {
				err = fmt.Errorf("the probe's answer cannot be read (an image of another version?): %.80q", word)
			}
		}
		return done, err
	})
	return reached, err
}

// plain is a Pod without rights that runs a part of the probe.
func (p Prober) plain(worker, target string, args ...string) *corev1.Pod {
	pod := p.pod(worker)
	pod.Labels[labelTarget] = target
	c := &pod.Spec.Containers[0]
	c.Command = append([]string{"/c9s-sidecar", "probe"}, args...)
	c.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	return pod
}

func failure(pod *corev1.Pod) error {
	if how := status.Of(nil, pod, nil); how.Certain || how.State == status.StateFailed {
		return errors.New(how.Cause())
	}
	return nil
}

func (p Prober) start(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	return p.Client.CoreV1().Pods(p.Namespace).Create(ctx, pod, metav1.CreateOptions{})
}

func (p Prober) stop(ctx context.Context, pod *corev1.Pod) {
	p.cleanUp(ctx, func(ctx context.Context) error {
		return p.Client.CoreV1().Pods(p.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	})
}

// cleanUp removes something also after the end of ctx.
func (p Prober) cleanUp(ctx context.Context, remove func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	_ = remove(ctx)
}

// until reads a Pod until it is as wanted, and returns it.
func (p Prober) until(ctx context.Context, pod *corev1.Pod, done func(*corev1.Pod) (bool, error)) (*corev1.Pod, error) {
	for {
		now, err := p.Client.CoreV1().Pods(p.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		if err == nil {
			if ok, err := done(now); ok || err != nil {
				return now, err
			}
		}
		select {
		case <-time.After(probeEvery):
		case <-ctx.Done():
			return nil, fmt.Errorf("the probe did not finish within %s", p.Timeout)
		}
	}
}

// checkPolicies reports what protects the lab's Pods from other Pods.
func checkPolicies(f Facts, _ Needs) []Check {
	const name = "network policies"
	switch p := f.Policies; {
	case p == nil:
		return nil
	case p.Err != nil:
		return []Check{{Name: name, Result: Warning, Found: "whether they are enforced is not known: " + p.Err.Error(), Remedy: "look at the Pod network's documentation"}}
	case p.Enforced:
		return []Check{{Name: name, Result: OK, Found: "the Pod network enforces them: other Pods do not reach the lab's links and management network"}}
	}
	return []Check{{Name: name, Result: Warning,
		Found:  "the Pod network does not enforce them: every Pod of the cluster can send to the lab's sidecars, which take frames from authenticated peers only, and can read links that are not encrypted if it can listen on the way",
		Remedy: "encrypt the lab's links (wires: {encrypt: true} in the policy file), or use a Pod network that enforces NetworkPolicies"}}
}
