// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A server that meets a conflict on a pod without a budget's protection tries again, this
// often, before it answers, unless the request fixed the resourceVersion.
const (
	evictionTries = 20
	evictionPause = 500 * time.Millisecond
)

const (
	evictionReason  = "EvictionByEvictionAPI"
	evictionMessage = "Eviction API: evicting"
)

// errAgain wraps a conflict that the server would try to get past.
var errAgain = errors.New("conflict that the server repeats")

// evict answers an eviction. Unlike all other requests it may take time.
func (c *Cluster) evict(ctx context.Context, r *Request) error {
	for try := 1; ; try++ {
		err := c.evictOnce(r)
		if !errors.Is(err, errAgain) {
			return err
		}
		if try == evictionTries {
			return errors.Unwrap(err)
		}
		if err := c.sleep(ctx, evictionPause); err != nil {
			return err
		}
	}
}

// sleep waits on the cluster's clock.
func (c *Cluster) sleep(ctx context.Context, d time.Duration) error {
	t := c.clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return errClosed
	}
}

func (c *Cluster) evictOnce(r *Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.admitNamespace(r); err != nil {
		return err
	}
	o, ok := c.store.get(podsResource, r.key())
	if !ok {
		return notFound(r)
	}
	pod := copyOf(o.(*corev1.Pod))
	if !guarded(pod) {
		err := c.deleteEvicted(r, pod)
		if apierrors.IsConflict(err) && !fixesVersion(r) {
			return &againError{err}
		}
		return err
	}
	// The budget is charged before the preconditions are looked at: so does the server.
	sparedBy, err := c.charge(pod)
	if err != nil {
		return err
	}
	err = c.deleteEvicted(r, pod)
	if sparedBy != "" && apierrors.IsConflict(err) && !fixesVersion(r) {
		return tooMany(10, unprocessed(sparedBy)) // the server takes it for a pod that became ready
	}
	return err
}

// fixesVersion tells whether an eviction carries a resourceVersion.
func fixesVersion(r *Request) bool {
	return r.Preconditions != nil && r.Preconditions.ResourceVersion != nil
}

// guarded tells whether a budget has a say: not for a pod that is finished, has not
// started, or is already leaving.
func guarded(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return false
	}
	return pod.DeletionTimestamp == nil
}

// deleteEvicted marks the pod as disrupted, which is an update of its own, and deletes it.
func (c *Cluster) deleteEvicted(r *Request, pod *corev1.Pod) error {
	if err := preconditionsHold(schema.GroupKind{Kind: "Pod"}, pod, r.Preconditions); err != nil {
		return err
	}
	setPodCondition(pod, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: evictionReason, Message: evictionMessage, LastTransitionTime: c.now(),
	})
	c.put(podsResource, pod)
	c.deleteObject(podsResource, copyOf(pod), r.gracePeriod)
	return nil
}

// charge asks the pod's budget, and takes one disruption from it. A budget that lets the
// pod go for nothing, because it is not ready anyway, is returned by name.
func (c *Cluster) charge(pod *corev1.Pod) (sparedBy string, err error) {
	budgets := c.budgetsOf(pod)
	switch len(budgets) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", &apierrors.StatusError{ErrStatus: metav1.Status{
			Status:  metav1.StatusFailure,
			Code:    500,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
		}}
	}
	b := copyOf(budgets[0])
	if !podReady(pod) && sparesUnready(b) {
		return b.Name, nil
	}
	if err := budgetAllows(b); err != nil {
		return "", err
	}
	b.Status.DisruptionsAllowed--
	setDisruptionAllowed(b, c.now())
	if b.Status.DisruptedPods == nil {
		b.Status.DisruptedPods = map[string]metav1.Time{}
	}
	b.Status.DisruptedPods[pod.Name] = c.now()
	c.put(budgetsResource, b)
	return "", nil
}

// sparesUnready tells whether a budget lets an unready pod go without being charged.
func sparesUnready(b *policyv1.PodDisruptionBudget) bool {
	if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil && *p == policyv1.AlwaysAllow {
		return true
	}
	return b.Status.DesiredHealthy > 0 && b.Status.CurrentHealthy >= b.Status.DesiredHealthy
}

// budgetAllows returns the server's refusal when a budget allows no disruption.
func budgetAllows(b *policyv1.PodDisruptionBudget) error {
	s := b.Status
	switch {
	case s.ObservedGeneration < b.Generation:
		return tooMany(10, unprocessed(b.Name))
	case s.DisruptionsAllowed < 0:
		err := apierrors.NewForbidden(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudget"}, b.Name,
			errors.New("pdb disruptions allowed is negative"))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    policyv1.DisruptionBudgetCause,
			Message: fmt.Sprintf("The disruption budget %s does not allow evicting pods currently: pdb disruptions allowed is negative", b.Name),
		})
		return err
	case s.DisruptionsAllowed == 0 && s.CurrentHealthy <= s.DesiredHealthy:
		return tooMany(0, fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, s.DesiredHealthy, s.CurrentHealthy))
	case s.DisruptionsAllowed == 0:
		return tooMany(0, fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", b.Name))
	}
	return nil
}

func unprocessed(budget string) string {
	return fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget)
}

func tooMany(seconds int, cause string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", seconds)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: policyv1.DisruptionBudgetCause, Message: cause,
	})
	return err
}

// againError is a conflict that matches errAgain.
type againError struct{ error }

func (e *againError) Is(target error) bool { return target == errAgain }
func (e *againError) Unwrap() error        { return e.error }

// evictionOf reads name and delete options of an eviction of either version.
func evictionOf(body any) (string, *metav1.DeleteOptions) {
	switch e := body.(type) {
	case *policyv1.Eviction:
		return e.Name, e.DeleteOptions
	case *policyv1beta1.Eviction:
		return e.Name, e.DeleteOptions
	}
	return "", nil
}
