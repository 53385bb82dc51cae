package controller

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/c9s-lab/c9s/pkg/contract"
)

const (
	// lookEvery is how often the controller looks when the lab expires.
	lookEvery = 5 * time.Second
	// warnBefore is how long before that it warns, and notice the least time between the
	// warning and the end of the lab.
	warnBefore = 30 * time.Minute
	notice     = 15 * time.Second
)

// expirer removes a lab that has expired, some time after a warning. It deletes one object,
// which owns all others.
type expirer struct {
	client    kubernetes.Interface
	namespace string
	log       *slog.Logger
	// warned is when it warned, and of is the time of which it did.
	warned, of time.Time
}

// run looks until ctx ends.
func (e *expirer) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := e.look(ctx, time.Now()); err != nil && ctx.Err() == nil {
			e.log.Warn("the time at which the lab expires", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look warns or removes the lab if it is time.
func (e *expirer) look(ctx context.Context, now time.Time) error {
	cm, err := e.client.CoreV1().ConfigMaps(e.namespace).Get(ctx, contract.ExpiryConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	expires := contract.ParseExpiry(cm.Annotations[contract.AnnotationExpires])
	switch {
	case expires.IsZero() || now.Before(expires.Add(-warnBefore)):
		return nil
	case !e.of.Equal(expires):
		if err := e.warn(ctx, cm, expires, now); err != nil {
			return err
		}
		e.warned, e.of = now, expires
		return nil
	case now.Before(expires) || now.Sub(e.warned) < notice:
		return nil
	}
	e.log.Info("the lab has expired", "at", expires)
	background := metav1.DeletePropagationBackground
	return e.client.CoreV1().ConfigMaps(e.namespace).Delete(ctx, cm.Name, metav1.DeleteOptions{
		PropagationPolicy: &background,
		// Whoever extends the lab meanwhile wins.
		Preconditions: &metav1.Preconditions{UID: &cm.UID, ResourceVersion: &cm.ResourceVersion},
	})
}

// warn writes the warning Event.
func (e *expirer) warn(ctx context.Context, cm *corev1.ConfigMap, expires, now time.Time) error {
	at := metav1.NewTime(now)
	_, err := e.client.CoreV1().Events(e.namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: e.namespace, GenerateName: cm.Name + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: e.namespace, Name: cm.Name, UID: cm.UID},
		Reason:         "LabExpires", Type: corev1.EventTypeWarning, Count: 1,
		Message:        fmt.Sprintf("lab %s expires at %s and is then removed with the data of its devices; 'c9s extend' postpones it", cm.Annotations[contract.AnnotationLabName], contract.FormatExpiry(expires)),
		FirstTimestamp: at, LastTimestamp: at,
		Source: corev1.EventSource{Component: fieldManager},
	}, metav1.CreateOptions{})
	return err
}
