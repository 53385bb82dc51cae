package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// LeaseName is the Lease that a client holds while it changes a lab. It exists only as
// long.
const LeaseName = "c9s-deploy"

// claimTimes are how often a claim is renewed, and after how long without a renewal it
// has expired. The clocks of two clients may differ by any amount: a client compares
// only what it has observed itself.
type claimTimes struct{ renew, expire time.Duration }

var defaultClaimTimes = claimTimes{renew: 5 * time.Second, expire: 20 * time.Second}

// ErrClaimed is the error where another client is changing the lab.
var ErrClaimed = errors.New("another client is changing the lab")

// errClaimLost is the cause of the end of a context whose claim another client took.
var errClaimLost = errors.New("another client took over the lab, because this one did not reach the API server in time")

// Claim is the right to change a lab, which one client has at a time.
type Claim struct {
	leases coordination.LeaseInterface
	times  claimTimes
	lease  *coordinationv1.Lease
	cancel context.CancelCauseFunc
	ended  chan struct{}
}

// Claim takes a lab for this client: verb is what the client does ("deploy"). The
// context that it returns ends with the claim. If another client has the lab, Claim
// watches it: if that client renews its claim, the error says who it is (ErrClaimed);
// if it does not, its claim expires and this client takes over. waiting is called if
// that may take a while. The lab's namespace exists.
func (c *Client) Claim(ctx context.Context, l *Lab, verb string, waiting func(holder string)) (context.Context, *Claim, error) {
	claim := &Claim{leases: c.Typed.CoordinationV1().Leases(l.Namespace), times: defaultClaimTimes}
	return claim.begin(ctx, newLease(l, verb), waiting)
}

func (c *Claim) begin(ctx context.Context, wanted *coordinationv1.Lease, waiting func(string)) (context.Context, *Claim, error) {
	lease, err := c.take(ctx, wanted, waiting)
	if err != nil {
		return nil, nil, err
	}
	c.lease, c.ended = lease, make(chan struct{})
	ctx, c.cancel = context.WithCancelCause(ctx)
	go c.keep(ctx)
	return ctx, c, nil
}

// newLease says who does what to a lab.
func newLease(l *Lab, verb string) *coordinationv1.Lease {
	now := metav1.NowMicro()
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: LeaseName, Namespace: l.Namespace,
			Labels: map[string]string{
				"app.kubernetes.io/managed-by": "c9s", contract.LabelLab: contract.LabelValue(l.Name), contract.LabelComponent: contract.ComponentLab,
			},
			Annotations: map[string]string{contract.AnnotationLabName: l.Name},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       new(holder(verb)),
			LeaseDurationSeconds: new(int32(defaultClaimTimes.expire / time.Second)),
			AcquireTime:          &now, RenewTime: &now,
		},
	}
}

// holder is unique to this run, and says people who it is.
func holder(verb string) string {
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s by %s at %s (process %d, %s)", verb, name, host, os.Getpid(), rand.Text()[:6])
}

// take creates the Lease, or takes it over once it has not been renewed for long enough.
func (c *Claim) take(ctx context.Context, wanted *coordinationv1.Lease, waiting func(string)) (*coordinationv1.Lease, error) {
	var seen *coordinationv1.Lease
	var since time.Time
	for {
		lease, err := c.leases.Create(ctx, wanted, metav1.CreateOptions{FieldManager: FieldManager})
		if err == nil {
			return lease, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("claiming the lab with Lease %s: %w", LeaseName, err)
		}
		live, err := c.leases.Get(ctx, LeaseName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("claiming the lab with Lease %s: %w", LeaseName, err)
		case seen == nil:
			seen, since = live, time.Now()
			if waiting != nil {
				waiting(identity(live))
			}
		case seen.UID != live.UID || seen.ResourceVersion != live.ResourceVersion:
			return nil, fmt.Errorf("%w: %s since %s; try again when it has finished", ErrClaimed, identity(live), acquired(live))
		case time.Since(since) >= c.times.expire:
			taken := wanted.DeepCopy()
			taken.ResourceVersion, taken.UID = live.ResourceVersion, live.UID
			lease, err := c.leases.Update(ctx, taken, metav1.UpdateOptions{FieldManager: FieldManager})
			if err == nil || !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return lease, err
			}
		}
		select {
		case <-time.After(c.times.renew / 5):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func identity(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return "somebody"
	}
	return *l.Spec.HolderIdentity
}

func acquired(l *coordinationv1.Lease) string {
	if l.Spec.AcquireTime == nil {
		return "an unknown time"
	}
	return l.Spec.AcquireTime.Local().Format(time.TimeOnly)
}

// keep renews the Lease until ctx ends. While the API server does not answer, nobody
// else can take it either, so that only the loss of the Lease itself ends the claim.
func (c *Claim) keep(ctx context.Context) {
	defer close(c.ended)
	tick := time.NewTicker(c.times.renew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := metav1.NowMicro()
		renewed := c.lease.DeepCopy()
		renewed.Spec.RenewTime = &now
		lease, err := c.leases.Update(ctx, renewed, metav1.UpdateOptions{FieldManager: FieldManager})
		switch {
		case err == nil:
			c.lease = lease
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			if c.caughtUp(ctx) {
				continue
			}
			c.cancel(errClaimLost)
			return
		}
	}
}

// caughtUp reads the Lease after a conflict and reports whether it is still this
// client's: an answer to an earlier renewal may have been lost, or somebody may have
// annotated it.
func (c *Claim) caughtUp(ctx context.Context) bool {
	live, err := c.leases.Get(ctx, LeaseName, metav1.GetOptions{})
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	if live.UID != c.lease.UID || identity(live) != identity(c.lease) {
		return false
	}
	c.lease = live
	return true
}

// ClaimLost is the error of what was done in the context of a claim: the loss of the
// claim, if that is what ended it.
func ClaimLost(claimed context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(claimed), errClaimLost) {
		return errClaimLost
	}
	return err
}

// releaseWithin bounds the release, which happens after an interrupt too.
const releaseWithin = 5 * time.Second

// Release ends the claim and deletes the Lease. If that fails, the Lease expires.
func (c *Claim) Release() {
	c.cancel(nil)
	<-c.ended
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), impatient{}, true), releaseWithin)
	defer cancel()
	if c.caughtUp(ctx) {
		_ = c.leases.Delete(ctx, LeaseName, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &c.lease.UID, ResourceVersion: &c.lease.ResourceVersion}})
	}
}
