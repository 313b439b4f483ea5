// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Controller names a behaviour of kube-controller-manager that a cluster can play. It acts
// in the same moment as the change that it answers, but as a write of its own, with its own
// resourceVersion and event; its writes are not among Writes.
type Controller string

const (
	// UnschedulableTaint adds and removes node.kubernetes.io/unschedulable:NoSchedule by
	// spec.unschedulable.
	UnschedulableTaint Controller = "UnschedulableTaint"
	// BudgetStatus computes the status of every budget from its pods. Pods are expected as
	// their ReplicaSet or StatefulSet says if the cluster holds it, else as they are.
	BudgetStatus Controller = "BudgetStatus"
)

// Enable starts a controller, which first catches up with what is there.
func (c *Cluster) Enable(k Controller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.controllers[k] = true
	for _, gvr := range []schema.GroupVersionResource{nodesResource, budgetsResource} {
		for _, o := range c.store.list(gvr, "") {
			c.react(gvr, o)
		}
	}
}

// Disable stops a controller.
func (c *Cluster) Disable(k Controller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.controllers, k)
}

// react lets the enabled controllers answer a change.
func (c *Cluster) react(gvr schema.GroupVersionResource, o object) {
	switch {
	case gvr == nodesResource && c.controllers[UnschedulableTaint]:
		c.taintByCordon(o.GetName())
	case gvr == budgetsResource && c.controllers[BudgetStatus]:
		c.assess(keyOf(o))
	case gvr == podsResource && c.controllers[BudgetStatus]:
		for _, b := range c.budgetsOf(o.(*corev1.Pod)) {
			c.assess(keyOf(b))
		}
	}
}

func (c *Cluster) taintByCordon(node string) {
	o, ok := c.store.get(nodesResource, key{name: node})
	if !ok {
		return
	}
	n := copyOf(o.(*corev1.Node))
	isTaint := func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeUnschedulable && t.Effect == corev1.TaintEffectNoSchedule
	}
	switch has := slices.ContainsFunc(n.Spec.Taints, isTaint); {
	case n.Spec.Unschedulable && !has:
		now := c.now()
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{
			Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now,
		})
	case !n.Spec.Unschedulable && has:
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isTaint)
	default:
		return
	}
	c.put(nodesResource, n)
}

// replicasOf returns the scale of a controller that has one.
func replicasOf(o object) (int32, bool) {
	var n *int32
	switch t := o.(type) {
	case *appsv1.ReplicaSet:
		n = t.Spec.Replicas
	case *appsv1.StatefulSet:
		n = t.Spec.Replicas
	case *appsv1.Deployment:
		n = t.Spec.Replicas
	case *corev1.ReplicationController:
		n = t.Spec.Replicas
	default:
		return 0, false
	}
	if n == nil {
		return 1, true
	}
	return *n, true
}
