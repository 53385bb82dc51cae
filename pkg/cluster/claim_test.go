package cluster

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/retry"
)

// leaseCluster is a cluster that checks and counts resource versions of Leases, as the
// API server does.
func leaseCluster() *fake.Clientset {
	client := fake.NewClientset()
	version := 0
	for _, verb := range []string{"create", "update"} {
		client.PrependReactor(verb, "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
			lease := a.(clienttesting.CreateAction).GetObject().(*coordinationv1.Lease)
			if live, err := client.Tracker().Get(a.GetResource(), a.GetNamespace(), lease.Name); err == nil && verb == "update" &&
				live.(*coordinationv1.Lease).ResourceVersion != lease.ResourceVersion {
				return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), lease.Name, errors.New("changed"))
			}
			version++
			lease.ResourceVersion = string(rune('a' + version%26))
			return false, nil, nil
		})
	}
	return client
}

// Claims that are renewed often: one that expires soon, and one that a slow machine keeps.
var (
	fastClaim = claimTimes{renew: 20 * time.Millisecond, expire: 200 * time.Millisecond}
	longClaim = claimTimes{renew: 20 * time.Millisecond, expire: time.Hour}
)

// claimFast is Claim with short times.
func claimFast(t *testing.T, client *fake.Clientset, times claimTimes, verb string, waiting func(string)) (context.Context, *Claim, error) {
	t.Helper()
	claim := &Claim{leases: client.CoordinationV1().Leases("demo"), times: times}
	return claim.begin(t.Context(), newLease(&Lab{Name: "mine", Namespace: "demo"}, verb), waiting)
}

// The second client says who is at it, and the lab is free when the first has ended.
func TestClaim(t *testing.T) {
	client := leaseCluster()
	held, first, err := claimFast(t, client, longClaim, "deploy", nil)
	if err != nil {
		t.Fatal(err)
	}
	var told string
	_, _, err = claimFast(t, client, longClaim, "destroy", func(holder string) { told = holder })
	if !errors.Is(err, ErrClaimed) || !strings.Contains(err.Error(), "deploy by ") || !strings.HasPrefix(told, "deploy by ") {
		t.Errorf("the second client: %v, reported %q", err, told)
	}
	if held.Err() != nil {
		t.Errorf("the first client: %v", context.Cause(held))
	}
	first.Release()
	if list, err := client.CoordinationV1().Leases("demo").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("after the release %d Leases are there, %v", len(list.Items), err)
	}
	_, third, err := claimFast(t, client, longClaim, "deploy", nil)
	if err != nil {
		t.Fatal(err)
	}
	third.Release()
	third.Release() // as where the namespace goes before the command ends
}

// A claim that nobody renews expires, whatever time its client thought it was.
func TestClaimOfALostClient(t *testing.T) {
	for name, clock := range map[string]time.Duration{"same clock": 0, "ahead": time.Hour, "behind": -time.Hour} {
		client := leaseCluster()
		lost := newLease(&Lab{Name: "mine", Namespace: "demo"}, "deploy")
		lost.UID = "lost"
		then := metav1.NewMicroTime(time.Now().Add(clock))
		lost.Spec.RenewTime, lost.Spec.AcquireTime = &then, &then
		if _, err := client.CoordinationV1().Leases("demo").Create(t.Context(), lost, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, claim, err := claimFast(t, client, fastClaim, "deploy", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if waited := time.Since(began); waited < fastClaim.expire {
			t.Errorf("%s: taken over after %s, while its client may still live", name, waited)
		}
		claim.Release()
	}
}

// A client whose claim was taken over stops.
func TestClaimTakenOver(t *testing.T) {
	client := leaseCluster()
	held, claim, err := claimFast(t, client, longClaim, "deploy", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	leases := client.CoordinationV1().Leases("demo")
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live, err := leases.Get(t.Context(), LeaseName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		live.Spec.HolderIdentity = new("deploy by somebody else")
		_, err = leases.Update(t.Context(), live, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	<-held.Done()
	if err := ClaimLost(held, held.Err()); !errors.Is(err, errClaimLost) {
		t.Errorf("got %v", err)
	}
}

// While the API server is away the claim holds: nobody else can take it.
func TestClaimWithoutAPIServer(t *testing.T) {
	client := leaseCluster()
	away := make(chan struct{}, 100)
	var gone atomic.Bool
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		if !gone.Load() {
			return false, nil, nil
		}
		select {
		case away <- struct{}{}:
			return true, nil, apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "update", coordinationv1.Resource("leases"), "", "away", 1, true)
		default:
			return false, nil, nil
		}
	})
	held, claim, err := claimFast(t, client, longClaim, "deploy", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	gone.Store(true)
	for range 3 {
		select {
		case <-away:
		case <-held.Done():
		}
	}
	if held.Err() != nil {
		t.Errorf("the claim ended: %v", context.Cause(held))
	}
}
