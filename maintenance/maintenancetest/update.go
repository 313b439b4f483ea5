// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// update answers a replacement of an object or of its status. The caller holds c.mu.
func (c *Cluster) update(r *Request) (runtime.Object, error) {
	o, err := c.received(r)
	if err != nil {
		return nil, err
	}
	old, exists := c.store.get(r.gvr(), r.key())
	if !exists && o.GetUID() == "" && updateCreates(r.gvr()) && r.Subresource == "" {
		if err := c.admitNamespace(r); err != nil {
			return nil, err
		}
		return c.createObject(r, o)
	}
	if uid := o.GetUID(); uid != "" && (!exists || uid != old.GetUID()) && (exists || updateCreates(r.gvr())) {
		was := ""
		if exists {
			was = string(old.GetUID())
		}
		return nil, conflict(r, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, was)) //nolint:staticcheck // the server's words
	}
	if !exists {
		return nil, notFound(r)
	}
	if o.GetResourceVersion() == "" && needsVersion(r.gvr()) {
		return nil, invalid(r, field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"))
	}
	return c.replace(r, old, o)
}

// replace is the common end of update and patch: it keeps what a client cannot change,
// checks the version that the new object was made from, and stores it.
func (c *Cluster) replace(r *Request, old, o object) (runtime.Object, error) {
	if v := o.GetResourceVersion(); v != "" && v != old.GetResourceVersion() {
		return nil, conflict(r, errModified)
	}
	if err := c.keepFixed(r, old, o); err != nil {
		return nil, err
	}
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && graceOver(o) {
		c.vanish(r.gvr(), o)
		return copyOf(o), nil
	}
	c.put(r.gvr(), o)
	now, _ := c.store.get(r.gvr(), keyOf(o))
	return copyOf(now), nil
}

// keepFixed puts back what this request cannot change, or refuses it.
func (c *Cluster) keepFixed(r *Request, old, o object) error {
	was := copyOf(old)
	switch r.Subresource {
	case "":
		copyPart(o, was, "Status")
	case "status":
		copyPart(o, was, "Spec")
		o.SetFinalizers(was.GetFinalizers())
		o.SetOwnerReferences(was.GetOwnerReferences())
	default:
		return unsupported(r)
	}
	meta := field.NewPath("metadata")
	if o.GetName() != was.GetName() {
		return invalid(r, field.Invalid(meta.Child("name"), o.GetName(), "field is immutable"))
	}
	if uid := o.GetUID(); uid != "" && uid != was.GetUID() {
		return invalid(r, field.Invalid(meta.Child("uid"), string(uid), "field is immutable"))
	}
	if was.GetDeletionTimestamp() != nil && sets.New(o.GetFinalizers()...).Difference(sets.New(was.GetFinalizers()...)).Len() > 0 {
		return invalid(r, field.Forbidden(meta.Child("finalizers"), "no new finalizers can be added if the object is being deleted"))
	}
	o.SetUID(was.GetUID())
	o.SetCreationTimestamp(was.GetCreationTimestamp())
	o.SetDeletionTimestamp(was.GetDeletionTimestamp())
	o.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	o.SetGeneration(was.GetGeneration())
	count(r.gvr(), was, o)
	return nil
}

// count raises the generation when the spec differs.
func count(gvr schema.GroupVersionResource, old, o object) {
	if !counted(gvr) {
		return
	}
	was, ok := part(old, "Spec")
	is, _ := part(o, "Spec")
	if ok && !apiequality.Semantic.DeepEqual(was.Interface(), is.Interface()) {
		o.SetGeneration(old.GetGeneration() + 1)
	}
}

// put stores an object and lets the controllers see it.
func (c *Cluster) put(gvr schema.GroupVersionResource, o object) {
	if c.store.put(gvr, o) {
		c.react(gvr, o)
		c.wake()
	}
}

// vanish takes an object away for good, and lets the controllers see it.
func (c *Cluster) vanish(gvr schema.GroupVersionResource, o object) {
	if t, ok := c.timers[o.GetUID()]; ok {
		t.Stop()
		delete(c.timers, o.GetUID())
	}
	c.store.remove(gvr, keyOf(o))
	c.react(gvr, o)
	c.wake()
}

// graceOver tells whether only finalizers may still hold a deleted object.
func graceOver(o metav1.Object) bool {
	g := o.GetDeletionGracePeriodSeconds()
	return g == nil || *g == 0
}

func conflict(r *Request, err error) error {
	return apierrors.NewConflict(r.gvr().GroupResource(), r.Name, err)
}

func invalid(r *Request, e *field.Error) error {
	return apierrors.NewInvalid(r.gvk().GroupKind(), r.Name, field.ErrorList{e})
}
