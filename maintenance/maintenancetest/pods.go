// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Special values of Options.Termination, SetTermination and TerminatesIn.
const (
	// Never leaves a deleted pod terminating until FinishPod.
	Never time.Duration = -1
	// OwnGrace lets a deleted pod take all of its grace period.
	OwnGrace time.Duration = -2
)

// terminationAnnotation overrides the cluster's termination time for one pod.
const terminationAnnotation = "maintenancetest/terminates-in"

// SetTermination changes how long pods deleted from now on take to vanish.
func (c *Cluster) SetTermination(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.termination = d
}

// FinishPod ends a terminating pod at once, as its kubelet does when the containers have
// stopped. It does nothing for a pod that is gone or not being deleted.
func (c *Cluster) FinishPod(namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.store.get(podsResource, key{namespace, name}); ok {
		c.finish(o.GetUID(), keyOf(o))
	}
}

// terminate plays the kubelet of a pod that has just been given a grace period: it sets
// the time at which the pod ends.
func (c *Cluster) terminate(pod *corev1.Pod) {
	d := c.termination
	if own, err := time.ParseDuration(pod.Annotations[terminationAnnotation]); err == nil {
		d = own
	}
	if d == OwnGrace {
		d = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	uid, k := pod.UID, keyOf(pod)
	switch {
	case d == Never:
	case d <= 0:
		c.finish(uid, k)
	default:
		if t, ok := c.timers[uid]; ok {
			t.Stop()
		}
		// A fake clock calls back with its own lock held, so the work is done elsewhere.
		c.timers[uid] = c.clock.AfterFunc(d, func() { go c.finishLater(uid, k) })
	}
}

func (c *Cluster) finishLater(uid types.UID, k key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
	default:
		c.finish(uid, k)
	}
}

// finish ends a terminating pod, unless another has its name by now. Finalizers keep it.
func (c *Cluster) finish(uid types.UID, k key) {
	o, ok := c.store.get(podsResource, k)
	if !ok || o.GetUID() != uid || o.GetDeletionTimestamp() == nil {
		return
	}
	now := int64(0)
	c.deleteObject(podsResource, copyOf(o), &now)
}
