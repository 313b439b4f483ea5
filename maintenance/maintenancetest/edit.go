// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The methods in this file play everybody else in the cluster: they meet no faults, are
// not recorded, and never conflict, but their changes are seen like any other.

// Add puts objects into the cluster as they are, status included, and gives them the
// metadata that they lack (UID, creationTimestamp, generation) and a resourceVersion.
// Missing namespaces are made; the status of a budget counts as observed. It panics if an
// object exists already, or its kind is unknown.
func (c *Cluster) Add(objects ...runtime.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, in := range objects {
		gvr, err := resourceOf(c.scheme, in)
		if err != nil {
			panic(err)
		}
		o, err := normal(in.(object))
		if err != nil {
			panic(err)
		}
		if _, exists := c.store.get(gvr, keyOf(o)); exists {
			panic(fmt.Sprintf("adding %s %s/%s: it exists already", gvr.Resource, o.GetNamespace(), o.GetName()))
		}
		if ns := o.GetNamespace(); ns != "" {
			if _, ok := c.store.get(namespacesResource, key{name: ns}); !ok {
				made := Namespace(ns)
				c.stamp(namespacesResource, made)
				c.put(namespacesResource, made)
			}
		}
		c.stamp(gvr, o)
		if b, ok := o.(*policyv1.PodDisruptionBudget); ok && b.Status.ObservedGeneration == 0 {
			b.Status.ObservedGeneration = b.Generation
		}
		c.put(gvr, o)
	}
}

// EditNode changes a node. It panics if there is none of that name.
func (c *Cluster) EditNode(name string, f func(*corev1.Node)) {
	edit(c, nodesResource, key{name: name}, f)
}

// EditPod changes a pod, status included. It panics if there is none.
func (c *Cluster) EditPod(namespace, name string, f func(*corev1.Pod)) {
	edit(c, podsResource, key{namespace, name}, f)
}

// EditLease changes a lease. It panics if there is none.
func (c *Cluster) EditLease(namespace, name string, f func(*coordinationv1.Lease)) {
	edit(c, leasesResource, key{namespace, name}, f)
}

// EditBudget changes a budget, status included. It panics if there is none. After a change
// of the spec the server refuses evictions until the status says that it was observed.
func (c *Cluster) EditBudget(namespace, name string, f func(*policyv1.PodDisruptionBudget)) {
	edit(c, budgetsResource, key{namespace, name}, f)
}

// TerminateNamespace marks a namespace as being deleted: nothing can be created in it any
// more, evictions included. What is in it stays.
func (c *Cluster) TerminateNamespace(name string) {
	edit(c, namespacesResource, key{name: name}, func(n *corev1.Namespace) {
		now := c.now()
		n.DeletionTimestamp, n.Status.Phase = &now, corev1.NamespaceTerminating
		n.Finalizers = append(n.Finalizers, "kubernetes")
	})
}

// edit applies f to an object as an update without any check would.
func edit[T object](c *Cluster, gvr schema.GroupVersionResource, k key, f func(T)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, ok := c.store.get(gvr, k)
	if !ok {
		panic(fmt.Sprintf("editing %s %s/%s: there is none", gvr.Resource, k.namespace, k.name))
	}
	o := copyOf(old).(T)
	f(o)
	is, err := normal(o)
	if err != nil {
		panic(err)
	}
	count(gvr, old, is)
	if is.GetDeletionTimestamp() != nil && len(is.GetFinalizers()) == 0 && graceOver(is) {
		c.vanish(gvr, is)
		return
	}
	c.put(gvr, is)
}

// DeletePod deletes a pod as a user would: it terminates. Nothing happens if there is none.
func (c *Cluster) DeletePod(namespace, name string) {
	c.drop(podsResource, key{namespace, name})
}

// RemovePod makes a pod vanish at once, finalizers or not.
func (c *Cluster) RemovePod(namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.store.get(podsResource, key{namespace, name}); ok {
		c.vanish(podsResource, o)
	}
}

// DeleteNode deletes a node. Its pods stay.
func (c *Cluster) DeleteNode(name string) { c.drop(nodesResource, key{name: name}) }

// DeleteLease deletes a lease.
func (c *Cluster) DeleteLease(namespace, name string) {
	c.drop(leasesResource, key{namespace, name})
}

// DeleteBudget deletes a budget.
func (c *Cluster) DeleteBudget(namespace, name string) {
	c.drop(budgetsResource, key{namespace, name})
}

func (c *Cluster) drop(gvr schema.GroupVersionResource, k key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.store.get(gvr, k); ok {
		c.deleteObject(gvr, copyOf(o), nil)
	}
}

// CollectGarbage deletes every object whose owners, named by UID, are all gone, as
// kube-controller-manager does after a while. It returns how many that were.
func (c *Cluster) CollectGarbage() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	alive := map[types.UID]bool{}
	for _, all := range c.store.objects {
		for _, o := range all {
			alive[o.GetUID()] = true
		}
	}
	n := 0
	for gvr := range c.store.objects {
		for _, o := range c.store.list(gvr, "") {
			if orphaned(o, alive) {
				c.deleteObject(gvr, copyOf(o), nil)
				n++
			}
		}
	}
	return n
}

func orphaned(o object, alive map[types.UID]bool) bool {
	owners := o.GetOwnerReferences()
	for _, ref := range owners {
		if ref.UID == "" || alive[ref.UID] {
			return false
		}
	}
	return len(owners) > 0
}
