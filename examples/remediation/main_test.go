// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// onNode runs f in a bubble, with a fake cluster that has n1 and the objects, and a Repairer on it. What that
// reads of nodes itself is n, which asks for its maintenance.
func onNode(t *testing.T, f func(t *testing.T, c *mt.Cluster, r *Repairer, n *corev1.Node), objects ...runtime.Object) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := mt.New(mt.Options{Termination: time.Second}, append(objects, mt.Node("n1"))...)
		defer c.Close()
		defer synctest.Wait()
		defer cancel()
		n := mt.Node("n1")
		n.Annotations = map[string]string{trigger: "replace the fan"}
		f(t, c, repairer(ctx, c, n), n)
	})
}

// repairer returns a Repairer on the fake cluster c. Its own reads and writes of nodes go to a fake client
// of controller-runtime, which each test keeps in step.
func repairer(ctx context.Context, c *mt.Cluster, n *corev1.Node) *Repairer {
	return &Repairer{
		Client: fake.NewClientBuilder().WithObjects(n).Build(), Maintenance: engine(c.Client()), ctx: ctx,
		states: map[string]maintenance.State{}, failed: map[string]bool{}, stops: map[string]context.CancelFunc{},
		wakes: make(chan event.TypedGenericEvent[*corev1.Node], 1024),
	}
}

var request = ctrl.Request{NamespacedName: types.NamespacedName{Name: "n1"}}

// reconcileUntil reconciles, whenever woken or due, until done.
func reconcileUntil(t *testing.T, r *Repairer, done func() bool) {
	t.Helper()
	for range 100 {
		result, err := r.Reconcile(t.Context(), request)
		require.NoError(t, err)
		if done() {
			return
		}
		select {
		case <-r.wakes:
		case <-time.After(result.RequeueAfter):
		}
	}
	require.Fail(t, "not done after 100 passes")
}

func TestANodeIsDrainedWhenItAsksForItAndGivenBackWhenItDoesNot(t *testing.T) {
	onNode(t, func(t *testing.T, c *mt.Cluster, r *Repairer, n *corev1.Node) {
		before := c.Node("n1")

		mayBegin := func() bool {
			require.NoError(t, r.Get(t.Context(), request.NamespacedName, n))
			return n.Annotations[ready] == "true"
		}
		reconcileUntil(t, r, mayBegin)

		require.Empty(t, c.PodsOn("n1"))
		require.True(t, c.Node("n1").Spec.Unschedulable)
		require.Equal(t, holder, *c.Lease("medik8s-leases", "node-n1").Spec.HolderIdentity)

		n.Annotations = c.Node("n1").Annotations // the trigger is taken off; the record is there
		require.NoError(t, r.Update(t.Context(), n))
		reconcileUntil(t, r, func() bool { return c.Lease("medik8s-leases", "node-n1") == nil })

		require.Equal(t, before.Spec, c.Node("n1").Spec)
		require.Equal(t, before.Labels, c.Node("n1").Labels)
	}, mt.Pod("shop", "web-0", "n1", mt.OfStatefulSet("web")))
}

func TestALeaseThatCouldNotBeReleasedIsReleasedLater(t *testing.T) {
	onNode(t, func(t *testing.T, c *mt.Cluster, r *Repairer, n *corev1.Node) {
		reconcileUntil(t, r, func() bool { return c.Lease("medik8s-leases", "node-n1") != nil })
		c.Fail(mt.On("delete", "leases"), nil).Times(1)
		sync := func(annotations map[string]string) {
			require.NoError(t, r.Get(t.Context(), request.NamespacedName, n))
			n.Annotations = annotations
			require.NoError(t, r.Update(t.Context(), n))
		}

		sync(c.Node("n1").Annotations)
		_, err := r.Reconcile(t.Context(), request)
		require.Error(t, err)
		require.Empty(t, c.Node("n1").Annotations, "the node is given back")
		sync(nil)
		_, err = r.Reconcile(t.Context(), request)

		require.NoError(t, err)
		require.Nil(t, c.Lease("medik8s-leases", "node-n1"))
	})
}

func TestChangesDoNotCutThePauseAfterAFailedPassShort(t *testing.T) {
	onNode(t, func(t *testing.T, c *mt.Cluster, r *Repairer, _ *corev1.Node) {
		reconcileUntil(t, r, func() bool { return c.Node("n1").Spec.Unschedulable })
		change := func(value string) (woken int) {
			synctest.Wait()
			for len(r.wakes) > 0 {
				<-r.wakes
			}
			c.EditNode("n1", func(n *corev1.Node) { n.Labels = map[string]string{"rack": value} })
			<-time.After(time.Second)
			synctest.Wait()
			return len(r.wakes)
		}
		c.Fail(mt.On("patch", "nodes"), nil).Times(1)

		_, err := r.Reconcile(t.Context(), request) // puts the label back that the first change takes off
		require.NoError(t, err)
		require.Equal(t, 1, change("1"))
		_, err = r.Reconcile(t.Context(), request)
		require.Error(t, err)
		require.Zero(t, change("2"))
		_, err = r.Reconcile(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, 1, change("3"))
	})
}

func TestANodeThatTheNodeMaintenanceOperatorHasIsLeftAlone(t *testing.T) {
	onNode(t, func(t *testing.T, c *mt.Cluster, r *Repairer, n *corev1.Node) {
		theirs := maintenance.New(c.Client(), maintenance.Options{})
		_, err := theirs.Start(t.Context(), "n1", maintenance.State{})
		require.NoError(t, err)
		held := c.Node("n1")

		_, err = r.Reconcile(t.Context(), request)

		require.NoError(t, err)
		require.Contains(t, r.state("n1").Error, maintenance.DefaultHolder)
		require.Equal(t, held.ResourceVersion, c.Node("n1").ResourceVersion, "nobody wrote to the node")
		require.NoError(t, client.IgnoreNotFound(r.Get(t.Context(), request.NamespacedName, n)))
		require.NotContains(t, n.Annotations, ready)
	})
}

// A machine that was replaced under its name during the repair has to be drained before anybody may begin with it.
func TestANodeMadeAgainUnderItsNameIsDrainedToo(t *testing.T) {
	onNode(t, func(t *testing.T, c *mt.Cluster, r *Repairer, n *corev1.Node) {
		mayBegin := func() bool {
			require.NoError(t, r.Get(t.Context(), request.NamespacedName, n))
			return n.Annotations[ready] == "true"
		}
		reconcileUntil(t, r, mayBegin)

		c.DeleteNode("n1")
		again := mt.Node("n1")
		again.UID = "another"
		c.Add(again, mt.Pod("shop", "web-0", "n1", mt.OfStatefulSet("web")))
		delete(n.Annotations, ready) // whoever made it carried the trigger over
		require.NoError(t, r.Update(t.Context(), n))
		synctest.Wait()

		reconcileUntil(t, r, mayBegin)
		require.Empty(t, c.PodsOn("n1"))
		require.True(t, c.Node("n1").Spec.Unschedulable)
	})
}
