// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// create answers the creation of an object. The caller holds c.mu.
func (c *Cluster) create(r *Request) (runtime.Object, error) {
	if r.Subresource != "" {
		return nil, unsupported(r)
	}
	o, err := c.received(r)
	if err != nil {
		return nil, err
	}
	if o.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if err := c.admitNamespace(r); err != nil {
		return nil, err
	}
	return c.createObject(r, o)
}

// createObject stores a new object with the metadata that only a server sets.
func (c *Cluster) createObject(r *Request, o object) (runtime.Object, error) {
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(fmt.Sprintf("%s%05d", o.GetGenerateName(), c.uids+1))
	}
	if o.GetName() == "" {
		return nil, invalid(r, field.Required(field.NewPath("metadata", "name"), "name or generateName is required"))
	}
	if _, exists := c.store.get(r.gvr(), keyOf(o)); exists {
		return nil, apierrors.NewAlreadyExists(r.gvr().GroupResource(), o.GetName())
	}
	o.SetUID("")
	o.SetCreationTimestamp(metav1.Time{})
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	o.SetGeneration(0)
	if creationResetsStatus(r.gvr()) {
		resetStatus(o)
	}
	c.stamp(r.gvr(), o)
	c.put(r.gvr(), o)
	return copyOf(o), nil
}

// stamp fills in what is missing of the metadata that a server sets.
func (c *Cluster) stamp(gvr schema.GroupVersionResource, o object) {
	c.uids++
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", c.uids)))
	}
	if t := o.GetCreationTimestamp(); t.IsZero() {
		o.SetCreationTimestamp(c.now())
	}
	if counted(gvr) && o.GetGeneration() == 0 {
		o.SetGeneration(1)
	}
}

// now is the clock's time as the API stores it: whole seconds, no monotonic reading.
func (c *Cluster) now() metav1.Time {
	return metav1.Time{Time: c.clock.Now()}.Rfc3339Copy()
}

// resetStatus empties the status of an object that a client creates; a pod starts Pending.
func resetStatus(o object) {
	if s, ok := part(o, "Status"); ok {
		s.SetZero()
	}
	switch t := o.(type) {
	case *corev1.Pod:
		t.Status.Phase = corev1.PodPending
	case *corev1.Namespace:
		t.Status.Phase = corev1.NamespaceActive
	}
}

// received returns the body of a request as the server understands it.
func (c *Cluster) received(r *Request) (object, error) {
	body, ok := r.Object.(object)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%T has no metadata", r.Object))
	}
	o, err := normal(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if ns := o.GetNamespace(); ns != "" && ns != r.Namespace {
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	o.SetNamespace(r.Namespace)
	return o, nil
}

// admitNamespace refuses new content in a namespace that is missing or on its way out, as
// the server's admission does, also for evictions.
func (c *Cluster) admitNamespace(r *Request) error {
	if r.Namespace == "" {
		return nil
	}
	ns, ok := c.store.get(namespacesResource, key{name: r.Namespace})
	if !ok {
		return apierrors.NewNotFound(namespacesResource.GroupResource(), r.Namespace)
	}
	if ns.(*corev1.Namespace).Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	err := apierrors.NewForbidden(r.gvr().GroupResource(), r.Name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", r.Namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", r.Namespace),
		Field:   "metadata.namespace",
	})
	return err
}
