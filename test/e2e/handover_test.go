// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// maintainAs puts the node under maintenance by an object of that name.
func (e *env) maintainAs(t *testing.T, name, node string) *v1beta1.NodeMaintenance {
	t.Helper()
	nm := maintenanceOf(name, node)
	require.NoError(t, e.Create(t.Context(), nm))
	t.Cleanup(func() { e.dropFinalizers(t, nm); _ = e.Delete(context.Background(), nm) })
	return nm
}

// waitsFor says that the object waits for the one of that name.
func waitsFor(name string) func(v1beta1.NodeMaintenanceStatus) bool {
	return func(s v1beta1.NodeMaintenanceStatus) bool {
		return s.Phase == v1beta1.MaintenanceRunning && strings.Contains(s.LastError, `"`+name+`"`)
	}
}

func testTheEarliestObjectActs(t *testing.T, e *env) {
	node := e.node(t)
	before := e.getNode(t, node)
	first := e.maintainAs(t, "z-"+node, node)
	e.succeed(t, first)
	e.nextSecond(t, first)
	second := e.maintainAs(t, "a-"+node, node)

	waiting := e.until(t, second, "waiting", waitsFor(first.Name))
	require.Empty(t, waiting.Finalizers)
	requireConditions(t, waiting, map[string]string{"Ready": "False Running"})
	require.Equal(t, v1beta1.MaintenanceSucceeded, e.passed(t, first).Status.Phase)

	lease, taken, begin := e.requireOurs(t, node), e.getNode(t, node), time.Now()
	e.end(t, first)
	e.succeed(t, second)
	now := e.getNode(t, node)
	requireSame(t, taken, now)
	require.Zero(t, e.nodeWrites(t, node, begin))
	require.Equal(t, lease.UID, e.requireOurs(t, node).UID)
	require.Equal(t, 1, e.events(t, "NodeMaintenance", first.Name)["RemovedMaintenance"])
	require.Zero(t, e.events(t, "Node", node)["UncordonNode"])

	e.end(t, second)
	e.requireGivenBack(t, before)
	require.Nil(t, e.lease(t, node))
	require.Equal(t, 1, e.events(t, "Node", node)["UncordonNode"])
	require.Equal(t, map[string]int{"BeginMaintenance": 1, "SucceedMaintenance": 1, "RemovedMaintenance": 1}, e.events(t, "NodeMaintenance", second.Name))
}

func testAnObjectThatOnlyWaitedGoesWithoutATrace(t *testing.T, e *env) {
	node := e.node(t)
	first := e.maintainAs(t, "a-"+node, node)
	e.succeed(t, first)
	second := e.maintainAs(t, "z-"+node, node)
	e.until(t, second, "waiting", waitsFor(first.Name))
	begin := time.Now()

	e.end(t, second)

	e.passed(t, first)
	require.True(t, held(e.getNode(t, node)))
	require.Zero(t, e.nodeWrites(t, node, begin))
	e.requireOurs(t, node)
}

// Of two objects made in the same second the one with the smaller name acts, also if the other was faster.
func testOfTwoInOneSecondTheSmallerNameActs(t *testing.T, e *env) {
	node := e.node(t)
	e.eventually(t, "a second to begin", func() bool { return time.Now().Nanosecond() < int(100*time.Millisecond) })
	later := e.maintainAs(t, "z-"+node, node)
	e.succeed(t, later)
	smaller := e.maintainAs(t, "a-"+node, node)
	acts, waits := smaller, later
	if later.CreationTimestamp.Before(&smaller.CreationTimestamp) {
		acts, waits = later, smaller // too slow: the next second had begun
	}

	e.within(t, 5*time.Second, "the one to wait for the other", func() bool { return waitsFor(acts.Name)(e.read(t, waits).Status) })
	e.succeed(t, acts)

	e.end(t, waits)
	require.True(t, held(e.getNode(t, node)))
	e.end(t, acts)
	require.False(t, held(e.getNode(t, node)))
	require.Equal(t, 1, e.events(t, "Node", node)["UncordonNode"])
}

// One that was given up does not act: the next gets its turn, and what it does is not undone with the first.
func testAnObjectThatFailedMakesRoom(t *testing.T, e *env) {
	node := e.node(t)
	before := e.getNode(t, node)
	first := e.maintainAs(t, "a-"+node, node)
	e.succeed(t, first)
	second := e.maintainAs(t, "z-"+node, node)
	e.until(t, second, "waiting", waitsFor(first.Name))
	e.editLease(t, node, heldBy("another"))
	e.until(t, first, "Failed", inPhase(v1beta1.MaintenanceFailed))
	e.until(t, second, "waiting for the lease", leaseIs(v1beta1.ReasonHeldByAnother))
	e.requireGivenBack(t, before)

	require.NoError(t, e.Delete(t.Context(), e.lease(t, node)))
	e.succeed(t, second)
	begin := time.Now()
	e.end(t, first)
	e.passed(t, second)

	require.Zero(t, e.nodeWrites(t, node, begin))
	require.True(t, held(e.getNode(t, node)))
	e.requireOurs(t, node)
	e.end(t, second)
	e.requireGivenBack(t, before)
	require.Equal(t, 2, e.events(t, "Node", node)["UncordonNode"])
}

// nextSecond waits until an object made now has a later timestamp.
func (e *env) nextSecond(t *testing.T, nm *v1beta1.NodeMaintenance) {
	t.Helper()
	e.eventually(t, "the next second", func() bool { return time.Now().After(nm.CreationTimestamp.Add(time.Second)) })
}

// leftBehind is a node as an operator without records leaves it: its lease, the bare taint, the label, the
// cordon, and an object with a finalizer, a status and no owner.
type leftBehind struct {
	before *corev1.Node
	nm     *v1beta1.NodeMaintenance
	pods   int
}

func (e *env) leaveBehind(t *testing.T, holder string, status v1beta1.NodeMaintenanceStatus, pods int) leftBehind {
	t.Helper()
	node, ns := e.node(t), e.namespace(t)
	before := e.getNode(t, node)
	for i := range pods {
		e.pod(t, ns, fmt.Sprintf("mirror-%d", i), node, annotated(corev1.MirrorPodAnnotationKey, "x"))
	}
	for _, p := range status.PendingPods {
		e.pod(t, ns, p, node)
	}
	e.makeLease(t, node, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = &holder })
	e.editNode(t, node, marked)
	e.cordon(t, node)
	nm := maintenanceOf(node, node)
	nm.Finalizers = []string{v1beta1.Finalizer}
	require.NoError(t, e.Create(t.Context(), nm))
	t.Cleanup(func() { e.dropFinalizers(t, nm); _ = e.Delete(context.Background(), nm) })
	nm.Status = status
	nm.Status.LastUpdate = ptr.To(metav1.Now())
	require.NoError(t, e.Status().Update(t.Context(), nm))
	return leftBehind{before, nm, pods + len(status.PendingPods)}
}

func (l leftBehind) testIsTakenOver(t *testing.T, e *env) {
	node := l.before.Name
	e.eventually(t, "the record", func() bool { return e.getNode(t, node).Annotations[recordAnnotation] != "" })
	done := e.succeed(t, l.nm)
	done = e.passed(t, done)

	require.Equal(t, fmt.Sprintf(`{"v":1,"holder":"node-maintenance","unschedulable":false,"taints":[],"label":null,"total":%d,"eviction":5}`, l.pods),
		e.getNode(t, node).Annotations[recordAnnotation])
	require.Equal(t, 5, done.Status.EvictionPods, "kept")
	require.Equal(t, l.pods, done.Status.TotalPods, "counted anew")
	require.Equal(t, 100, done.Status.DrainProgress)
	require.Equal(t, []metav1.OwnerReference{ownerOf(l.before)}, done.OwnerReferences)
	require.Equal(t, ptr.To[int32](7), e.requireOurs(t, node).Spec.LeaseTransitions)

	e.end(t, done)
	e.requireGivenBack(t, l.before)
	require.Nil(t, e.lease(t, node))
	require.Equal(t, 1, e.events(t, "Node", node)["UncordonNode"])
}

// What is on a node whose lease another has taken meanwhile is the other's.
func (l leftBehind) testIsLeftAlone(t *testing.T, e *env, begin time.Time) {
	waiting := e.until(t, l.nm, "waiting", leaseIs(v1beta1.ReasonHeldByAnother))
	require.Equal(t, v1beta1.MaintenanceRunning, waiting.Status.Phase)
	require.Zero(t, waiting.Status.ErrorOnLeaseCount)
	e.end(t, waiting)
	require.Zero(t, e.nodeWrites(t, l.before.Name, begin))
	require.True(t, held(e.getNode(t, l.before.Name)))
	require.NotNil(t, e.lease(t, l.before.Name))
}
