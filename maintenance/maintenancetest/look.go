// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The methods in this file look at the cluster without a request: they meet no faults and
// are not recorded. What they return is a copy.

// Node returns a node, or nil.
func (c *Cluster) Node(name string) *corev1.Node {
	return look[*corev1.Node](c, nodesResource, key{name: name})
}

// Pod returns a pod, or nil.
func (c *Cluster) Pod(namespace, name string) *corev1.Pod {
	return look[*corev1.Pod](c, podsResource, key{namespace, name})
}

// Lease returns a lease, or nil.
func (c *Cluster) Lease(namespace, name string) *coordinationv1.Lease {
	return look[*coordinationv1.Lease](c, leasesResource, key{namespace, name})
}

// Budget returns a budget, or nil.
func (c *Cluster) Budget(namespace, name string) *policyv1.PodDisruptionBudget {
	return look[*policyv1.PodDisruptionBudget](c, budgetsResource, key{namespace, name})
}

// Namespace returns a namespace, or nil.
func (c *Cluster) Namespace(name string) *corev1.Namespace {
	return look[*corev1.Namespace](c, namespacesResource, key{name: name})
}

// Nodes returns all nodes, by name.
func (c *Cluster) Nodes() []*corev1.Node { return lookAll[*corev1.Node](c, nodesResource) }

// Pods returns all pods, by namespace and name.
func (c *Cluster) Pods() []*corev1.Pod { return lookAll[*corev1.Pod](c, podsResource) }

// PodsOn returns the pods bound to a node, by namespace and name.
func (c *Cluster) PodsOn(node string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range c.Pods() {
		if p.Spec.NodeName == node {
			out = append(out, p)
		}
	}
	return out
}

// Leases returns all leases, by namespace and name.
func (c *Cluster) Leases() []*coordinationv1.Lease {
	return lookAll[*coordinationv1.Lease](c, leasesResource)
}

// Budgets returns all budgets, by namespace and name.
func (c *Cluster) Budgets() []*policyv1.PodDisruptionBudget {
	return lookAll[*policyv1.PodDisruptionBudget](c, budgetsResource)
}

// Events returns all core/v1 events, by namespace and name.
func (c *Cluster) Events() []*corev1.Event { return lookAll[*corev1.Event](c, eventsResource) }

func look[T object](c *Cluster, gvr schema.GroupVersionResource, k key) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.store.get(gvr, k)
	if !ok {
		var none T
		return none
	}
	return copyOf(o).(T)
}

func lookAll[T object](c *Cluster, gvr schema.GroupVersionResource) []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []T
	for _, o := range c.store.list(gvr, "") {
		out = append(out, copyOf(o).(T))
	}
	return out
}
