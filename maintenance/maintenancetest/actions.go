// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
)

// requestOf translates what a fake client asks for. ok is false for an action that the
// store does not know, such as a pod's log, which the fake clientset then answers itself.
func requestOf(a clienttesting.Action) (r *Request, ok bool) {
	gvr := a.GetResource()
	r = &Request{
		Verb: a.GetVerb(), Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource,
		Subresource: a.GetSubresource(), Namespace: a.GetNamespace(),
	}
	switch a := a.DeepCopy().(type) { // the record must not change with the caller's object
	case clienttesting.GetActionImpl:
		r.Name = a.Name
	case clienttesting.ListActionImpl:
		r.kind = a.Kind
		r.selectBy(a.ListOptions)
	case clienttesting.WatchActionImpl:
		r.selectBy(a.ListOptions)
	case clienttesting.CreateActionImpl:
		r.Object, r.Name, r.dryRun = a.Object, a.Name, a.CreateOptions.DryRun
		r.readBody()
	case clienttesting.UpdateActionImpl:
		r.Object, r.dryRun = a.Object, a.UpdateOptions.DryRun
		r.readBody()
	case clienttesting.PatchActionImpl:
		r.Name, r.PatchType, r.Patch, r.dryRun = a.Name, a.PatchType, a.Patch, a.PatchOptions.DryRun
	case clienttesting.DeleteActionImpl:
		r.Name = a.Name
		r.deleteBy(&a.DeleteOptions)
	case clienttesting.DeleteCollectionActionImpl:
		r.Verb = "deletecollection"
		r.selectBy(a.ListOptions)
		r.deleteBy(&a.DeleteOptions)
	default:
		return nil, false
	}
	return r, true
}

func (r *Request) selectBy(o v1.ListOptions) {
	r.listOptions, r.LabelSelector, r.FieldSelector = o, o.LabelSelector, o.FieldSelector
}

func (r *Request) deleteBy(o *v1.DeleteOptions) {
	if o != nil {
		r.Preconditions, r.gracePeriod = o.Preconditions, o.GracePeriodSeconds
		r.dryRun = append(r.dryRun, o.DryRun...)
	}
}

// readBody takes from the body what its URL or its options would say.
func (r *Request) readBody() {
	if name, o := evictionOf(r.Object); name != "" {
		r.Name = name
		r.deleteBy(o)
		return
	}
	if o, ok := r.Object.(object); ok && r.Name == "" {
		r.Name = o.GetName()
	}
}
