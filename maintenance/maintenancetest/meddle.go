// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Meddled is the key of what Meddle puts on objects.
const Meddled = "example.com/meddled"

// Meddle changes every node, pod, lease and budget a little, as others may at any time: each gets an annotation, and
// nodes a label and a taint besides.
func (c *Cluster) Meddle() {
	for _, n := range c.Nodes() {
		c.EditNode(n.Name, func(n *corev1.Node) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, Meddled, "yes")
			metav1.SetMetaDataLabel(&n.ObjectMeta, Meddled, "yes")
			n.Spec.Taints = append([]corev1.Taint{{Key: Meddled, Effect: corev1.TaintEffectNoSchedule}}, n.Spec.Taints...)
		})
	}
	for _, p := range c.Pods() {
		c.EditPod(p.Namespace, p.Name, func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, Meddled, "yes") })
	}
	for _, l := range c.Leases() {
		c.EditLease(l.Namespace, l.Name, func(l *coordinationv1.Lease) { metav1.SetMetaDataAnnotation(&l.ObjectMeta, Meddled, "yes") })
	}
	for _, b := range c.Budgets() {
		c.EditBudget(b.Namespace, b.Name, func(b *policyv1.PodDisruptionBudget) {
			metav1.SetMetaDataAnnotation(&b.ObjectMeta, Meddled, "yes")
		})
	}
}

// Unmeddle takes what Meddle put there off a node. It panics if there is none of that name.
func (c *Cluster) Unmeddle(node string) {
	c.EditNode(node, func(n *corev1.Node) {
		delete(n.Annotations, Meddled)
		delete(n.Labels, Meddled)
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == Meddled })
	})
}

// Beat is the time between two changes of Heartbeat.
const Beat = time.Second

// Heartbeat adds a node that changes at each Beat, until stop is called. Without it nothing at all would happen in
// a cluster at rest, and what lags behind by a number of changes would do so for ever.
func (c *Cluster) Heartbeat() (stop func()) {
	const heart = "heart"
	c.Add(Node(heart))
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(Beat)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				c.EditNode(heart, func(n *corev1.Node) { metav1.SetMetaDataLabel(&n.ObjectMeta, "example.com/beat", now.Format("150405")) })
			case <-end:
				return
			}
		}
	}()
	return func() { close(end); <-done }
}
