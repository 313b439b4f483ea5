// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// ownerOf returns the owner reference to a node that an object has.
func ownerOf(n *corev1.Node) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID, Controller: ptr.To(false), BlockOwnerDeletion: ptr.To(false),
	}
}

func TestTheOwnerIsStoredInOneWriteWithTheFinalizer(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	n := e.getNode(t, node)
	film := e.filmMaintenance(t, node)

	nm := e.maintain(t, node)
	e.succeed(t, nm)

	owned, before := film.first(t, "owned", func(nm *v1beta1.NodeMaintenance) bool { return len(nm.OwnerReferences) > 0 })
	require.Equal(t, []metav1.OwnerReference{ownerOf(n)}, owned.OwnerReferences)
	require.Equal(t, []string{v1beta1.Finalizer}, owned.Finalizers)
	for _, nm := range before {
		require.Empty(t, nm.Finalizers)
	}
	wrote := e.requests(t, nm.CreationTimestamp.Time, about(nm))
	require.Len(t, slices.DeleteFunc(wrote, func(s string) bool { return s != "patch nodemaintenances "+nm.Name }), 1)
}

func TestANodeThatIsDeletedTakesObjectAndLeaseWithIt(t *testing.T) {
	t.Parallel()
	e := shared
	for _, row := range []struct {
		reason string
		until  func(*testing.T, string) *v1beta1.NodeMaintenance
	}{
		{"after the drain", func(t *testing.T, node string) *v1beta1.NodeMaintenance { return e.succeed(t, e.maintain(t, node)) }},
		{"while it is drained", func(t *testing.T, node string) *v1beta1.NodeMaintenance {
			ns := e.namespace(t)
			e.pod(t, ns, "lone", node, labelled(map[string]string{"app": "web"}))
			e.budget(t, ns, "web", 1, 1)
			return e.until(t, e.maintain(t, node), "blocked", drainedReason(v1beta1.ReasonBlockedByBudget))
		}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			node := e.node(t)
			nm := row.until(t, node)
			lease := e.requireOurs(t, node)
			film := e.filmMaintenance(t, nm.Name)

			require.NoError(t, e.Delete(t.Context(), e.getNode(t, node)))

			e.gone(t, nm)
			e.gone(t, lease)
			require.NotContains(t, phases(t, film), v1beta1.MaintenanceFailed)
			require.Zero(t, e.events(t, "NodeMaintenance", nm.Name)["FailedMaintenance"])
			require.Equal(t, 1, e.events(t, "NodeMaintenance", nm.Name)["RemovedMaintenance"])
		})
	}
}

// A node that comes back under its name is another: the object of the one before goes without touching it.
func TestANodeThatComesBackIsNotTouched(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	nm := e.succeed(t, e.maintain(t, node))

	old := e.getNode(t, node)
	require.NoError(t, e.Delete(t.Context(), old))
	again := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{corev1.LabelHostname: node}}}
	require.NoError(t, e.Create(t.Context(), again))
	back := time.Now()

	e.gone(t, nm)
	e.eventually(t, "the lease to go", func() bool { return e.lease(t, node) == nil })
	require.Zero(t, e.nodeWrites(t, node, back))
	now := e.getNode(t, node)
	require.False(t, now.Spec.Unschedulable || hasDrainTaint(now))
}

// What keeps a deleted object is another's finalizer: the node is nobody's any more.
func TestAnObjectThatIsKeptByAnothersFinalizerDoesNothing(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	nm := maintenanceOf(node, node)
	nm.Finalizers = []string{"example.com/keep"}
	require.NoError(t, e.Create(t.Context(), nm))
	t.Cleanup(func() { e.dropFinalizers(t, nm) })
	e.succeed(t, nm)
	require.NoError(t, e.Delete(t.Context(), nm))
	e.eventually(t, "our finalizer to go", func() bool { return !slices.Contains(e.read(t, nm).Finalizers, v1beta1.Finalizer) })
	require.False(t, held(e.getNode(t, node)))

	e.editNode(t, node, marked)
	e.editNode(t, node, withRecord(recordOf(ourHolder, false, "[]", "null")))
	e.cordon(t, node)
	begin := time.Now()
	kept := e.read(t, nm)
	kept.Labels = map[string]string{"example.com/touched": "yes"}
	require.NoError(t, e.Update(t.Context(), kept))

	written := func() bool { return e.nodeWrites(t, node, begin) > 0 || e.lease(t, node) != nil }
	require.False(t, waitFor(written, 3*time.Second), "nothing is the sign to wait for")
	require.True(t, held(e.getNode(t, node)))
	require.Equal(t, 1, e.events(t, "NodeMaintenance", nm.Name)["RemovedMaintenance"])
}

// dropFinalizers lets an object go whatever keeps it.
func (e *env) dropFinalizers(t *testing.T, nm *v1beta1.NodeMaintenance) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	require.NoError(t, client.IgnoreNotFound(e.Patch(context.Background(), nm.DeepCopy(), patch)))
}
