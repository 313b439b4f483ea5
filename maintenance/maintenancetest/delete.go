// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// delete answers the deletion of one object. The caller holds c.mu.
func (c *Cluster) delete(r *Request) error {
	o, ok := c.store.get(r.gvr(), r.key())
	if !ok {
		return notFound(r)
	}
	if err := preconditionsHold(r.gvk().GroupKind(), o, r.Preconditions); err != nil {
		return err
	}
	c.deleteObject(r.gvr(), copyOf(o), r.gracePeriod)
	return nil
}

// deleteCollection answers the deletion of all selected objects. The caller holds c.mu.
func (c *Cluster) deleteCollection(r *Request) (runtime.Object, error) {
	items, err := c.selected(r)
	if err != nil {
		return nil, err
	}
	for _, o := range items {
		c.deleteObject(r.gvr(), copyOf(o), r.gracePeriod)
	}
	return nil, nil
}

// deleteObject does what a server does with an object that somebody deletes: a pod on a
// node gets its grace period, an object with finalizers stays until they are gone, and
// everything else vanishes.
func (c *Cluster) deleteObject(gvr schema.GroupVersionResource, o object, grace *int64) {
	pod, isPod := o.(*corev1.Pod)
	if isPod {
		seconds, again := podGrace(pod, grace)
		if again {
			return
		}
		if seconds > 0 {
			c.markDeleted(o, seconds)
			c.put(gvr, o)
			c.terminate(pod)
			return
		}
	}
	if len(o.GetFinalizers()) > 0 {
		c.markDeleted(o, 0)
		c.put(gvr, o)
		return
	}
	c.vanish(gvr, o)
}

// markDeleted sets the deletion timestamp, or moves an earlier one to a shorter grace.
func (c *Cluster) markDeleted(o object, seconds int64) {
	if o.GetDeletionTimestamp() == nil && o.GetGeneration() > 0 {
		o.SetGeneration(o.GetGeneration() + 1)
	}
	if o.GetDeletionTimestamp() == nil || !graceOver(o) {
		at := metav1.NewTime(c.now().Add(time.Duration(seconds) * time.Second))
		o.SetDeletionTimestamp(&at)
	}
	o.SetDeletionGracePeriodSeconds(&seconds)
}

// podGrace is the time a deleted pod gets: what the request says, else its own, and none
// if nothing runs. again is true when it is being deleted already and gets no less time.
func podGrace(pod *corev1.Pod, asked *int64) (seconds int64, again bool) {
	if pod.DeletionTimestamp != nil && !graceOver(pod) {
		if asked == nil || *asked >= *pod.DeletionGracePeriodSeconds {
			return 0, true
		}
		return max(*asked, 0), false
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return 0, false
	case pod.Spec.NodeName == "", pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return 0, false
	case asked != nil && *asked < 0:
		return 1, false
	case asked != nil:
		return *asked, false
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds, false
	default:
		return corev1.DefaultTerminationGracePeriodSeconds, false
	}
}

// preconditionsHold compares an object with the preconditions of a deletion. kind stands
// in the server's message.
func preconditionsHold(kind schema.GroupKind, o object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	res := schema.GroupResource{Group: kind.Group, Resource: kind.Kind}
	if p.UID != nil && *p.UID != o.GetUID() {
		return apierrors.NewConflict(res, o.GetName(), fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated",
			*p.UID, o.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion() {
		return apierrors.NewConflict(res, o.GetName(), fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified",
			*p.ResourceVersion, o.GetResourceVersion()))
	}
	return nil
}
