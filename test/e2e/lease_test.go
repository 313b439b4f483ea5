// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/cluster"
)

const (
	leaseNamespace = "medik8s-leases"
	ourHolder      = "node-maintenance"
)

// ago returns a point in time as leases have it.
func ago(d time.Duration) *metav1.MicroTime { return ptr.To(metav1.NewMicroTime(time.Now().Add(-d))) }

func heldBy(holder string) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = &holder, ago(0), ptr.To[int32](3600)
	}
}

// makeLease makes the lease of a node, acquired two hours ago, renewed a minute ago, good for an hour; edit
// may change that.
func (e *env) makeLease(t *testing.T, node string, edit func(*coordinationv1.Lease)) *coordinationv1.Lease {
	t.Helper()
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: "node-" + node},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("another"), LeaseDurationSeconds: ptr.To[int32](3600),
			AcquireTime: ago(2 * time.Hour), RenewTime: ago(time.Minute), LeaseTransitions: ptr.To[int32](7),
		},
	}
	edit(l)
	err := e.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: leaseNamespace}})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	require.NoError(t, e.Create(t.Context(), l))
	t.Cleanup(func() { _ = client.IgnoreNotFound(e.Delete(context.Background(), l)) })
	return l
}

// editLease changes the lease of a node as another writer would.
func (e *env) editLease(t *testing.T, node string, edit func(*coordinationv1.Lease)) {
	t.Helper()
	e.eventually(t, "the lease of node "+node+" to be written", func() bool {
		l := e.lease(t, node)
		require.NotNil(t, l)
		edit(l)
		return e.Update(t.Context(), l) == nil
	})
}

// requireOurs checks that the lease of the node is ours, as we write it.
func (e *env) requireOurs(t *testing.T, node string) *coordinationv1.Lease {
	t.Helper()
	l := e.lease(t, node)
	require.NotNil(t, l)
	require.Equal(t, ourHolder, ptr.Deref(l.Spec.HolderIdentity, ""))
	require.Equal(t, int32(3600), ptr.Deref(l.Spec.LeaseDurationSeconds, 0))
	require.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: e.getNode(t, node).UID}}, l.OwnerReferences)
	return l
}

func TestALeaseThatIsAbsentIsMade(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	e.succeed(t, e.maintain(t, node))

	l := e.requireOurs(t, node)

	requireRecent(t, l.Spec.AcquireTime)
	require.Equal(t, l.Spec.AcquireTime, l.Spec.RenewTime)
	require.Equal(t, ptr.To[int32](0), l.Spec.LeaseTransitions)
}

func TestALeaseThatIsFree(t *testing.T) {
	t.Parallel()
	e := shared
	for _, row := range []struct {
		reason string
		edit   func(*coordinationv1.Lease)
		taken  bool // from another
	}{
		{"expired", func(l *coordinationv1.Lease) { l.Spec.RenewTime = ago(61 * time.Minute) }, true},
		{"without a renewTime", func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil }, true},
		{"without a duration", func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = nil }, true},
		{"without a holder", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil }, true},
		{"ours and fresh", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To(ourHolder) }, false},
		{"ours and expired", func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.RenewTime = ptr.To(ourHolder), ago(3*time.Hour)
		}, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			node := e.node(t)
			before := e.makeLease(t, node, row.edit)
			nm := e.succeed(t, e.maintain(t, node))

			l := e.requireOurs(t, node)

			requireRecent(t, l.Spec.RenewTime)
			if row.taken {
				require.Equal(t, l.Spec.RenewTime, l.Spec.AcquireTime)
				require.Equal(t, ptr.To[int32](8), l.Spec.LeaseTransitions)
			} else {
				require.Equal(t, before.Spec.AcquireTime.UnixMicro(), l.Spec.AcquireTime.UnixMicro())
				require.Equal(t, ptr.To[int32](7), l.Spec.LeaseTransitions)
			}
			require.Zero(t, nm.Status.ErrorOnLeaseCount)
			require.Equal(t, v1beta1.ReasonHeld, conditionReason(nm.Status, v1beta1.ConditionLeaseHeld))
			e.end(t, nm)
			require.Nil(t, e.lease(t, node))
		})
	}
}

// leaseIs says that the LeaseHeld condition has this reason.
func leaseIs(reason string) func(v1beta1.NodeMaintenanceStatus) bool {
	return func(s v1beta1.NodeMaintenanceStatus) bool {
		return conditionReason(s, v1beta1.ConditionLeaseHeld) == reason
	}
}

func TestALeaseThatIsHeldByAnother(t *testing.T) {
	t.Parallel()
	e := shared
	for _, row := range []struct {
		reason string
		edit   func(*coordinationv1.Lease)
		letGo  func(t *testing.T, node string)
	}{
		{"and is deleted", func(*coordinationv1.Lease) {}, func(t *testing.T, node string) {
			require.NoError(t, e.Delete(t.Context(), e.lease(t, node)))
		}},
		{"with a renewTime in the future, and is given up", func(l *coordinationv1.Lease) { l.Spec.RenewTime = ago(-24 * time.Hour) }, func(t *testing.T, node string) {
			e.editLease(t, node, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil })
		}},
		{"and runs out by itself", func(l *coordinationv1.Lease) {
			l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = ago(0), ptr.To[int32](6)
		}, func(*testing.T, string) {}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			node := e.node(t)
			before := e.getNode(t, node)
			lease := e.makeLease(t, node, row.edit)
			begin := time.Now()
			nm := e.maintain(t, node)

			waiting := e.until(t, nm, "waiting", leaseIs(v1beta1.ReasonHeldByAnother))
			require.Equal(t, v1beta1.MaintenanceRunning, waiting.Status.Phase)
			require.Contains(t, waiting.Status.LastError, `held by "another"`)
			require.Zero(t, waiting.Status.ErrorOnLeaseCount)
			require.Zero(t, waiting.Status.DrainProgress)
			require.Equal(t, before.Spec, e.getNode(t, node).Spec)
			require.Equal(t, lease.ResourceVersion, e.lease(t, node).ResourceVersion)
			require.Zero(t, e.nodeWrites(t, node, begin))

			row.letGo(t, node)
			e.within(t, 7*time.Second, "the maintenance", func() bool { return e.read(t, nm).Status.Phase == v1beta1.MaintenanceSucceeded })
			e.requireOurs(t, node)
			require.Empty(t, e.read(t, nm).Status.LastError)
		})
	}
}

func TestANodeWhoseLeaseWasAnothersTheWholeTimeIsNotTouched(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.pod(t, ns, "lone", node)
	e.editNode(t, node, marked) // the other's work
	e.cordon(t, node)
	before := e.getNode(t, node)
	lease := e.makeLease(t, node, func(*coordinationv1.Lease) {})
	begin := time.Now()
	nm := e.maintain(t, node)
	e.until(t, nm, "waiting", leaseIs(v1beta1.ReasonHeldByAnother))
	e.passed(t, nm)

	e.end(t, nm)

	now := e.getNode(t, node)
	requireSame(t, before, now)
	require.Equal(t, lease.ResourceVersion, e.lease(t, node).ResourceVersion)
	require.Zero(t, e.nodeWrites(t, node, begin))
	require.Zero(t, e.evictions(t, ns, "lone"))
	require.Zero(t, e.events(t, "Node", node)["UncordonNode"])
	require.Zero(t, e.events(t, "NodeMaintenance", nm.Name)["BeginMaintenance"])
}

// From the moment that the lease is another's nothing is evicted; once it is ours again all goes on.
func TestALeaseThatIsStolenMidDrain(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.pod(t, ns, "lone", node, labelled(map[string]string{"app": "web"}))
	b := e.budget(t, ns, "web", 1, 1)
	nm := e.maintain(t, node)
	e.until(t, nm, "blocked", drainedReason(v1beta1.ReasonBlockedByBudget))

	e.editLease(t, node, heldBy("another"))
	lost := e.until(t, nm, "without lease", leaseIs(v1beta1.ReasonLost))
	require.Equal(t, v1beta1.MaintenanceRunning, lost.Status.Phase)
	require.Contains(t, lost.Status.LastError, `held by "another"`)
	require.Equal(t, 1, lost.Status.ErrorOnLeaseCount)
	posted := e.evictions(t, ns, "lone")
	e.relax(t, b)
	e.until(t, nm, "failing again", func(s v1beta1.NodeMaintenanceStatus) bool { return s.ErrorOnLeaseCount == 2 })
	require.Equal(t, posted, e.evictions(t, ns, "lone"))
	require.True(t, held(e.getNode(t, node)), "not given back yet")
	require.Equal(t, "another", *e.lease(t, node).Spec.HolderIdentity)

	require.NoError(t, e.Delete(t.Context(), e.lease(t, node)))
	done := e.succeed(t, nm)
	require.Zero(t, done.Status.ErrorOnLeaseCount)
	require.Empty(t, done.Status.LastError)
	e.requireOurs(t, node)
	got := e.events(t, "NodeMaintenance", nm.Name)
	require.Equal(t, []int{1, 1, 1}, []int{got["BeginMaintenance"], got["LeaseLost"], got["SucceedMaintenance"]})
}

// What the record says is ours is undone, but the lease is the other's.
func TestAnObjectThatIsDeletedWhileItsLeaseIsAnothers(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	before := e.getNode(t, node)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	e.editLease(t, node, heldBy("another"))
	e.until(t, nm, "without lease", leaseIs(v1beta1.ReasonLost))
	lease := e.lease(t, node)

	e.end(t, nm)

	e.requireGivenBack(t, before)
	require.Equal(t, lease.ResourceVersion, e.lease(t, node).ResourceVersion)
}

// A lease's name has 5 characters more than its node's, and 253 at most.
func TestTheLongestNodeName(t *testing.T) {
	t.Parallel()
	e := shared
	named := func(length int) string {
		name := strings.Trim(strings.Repeat("n23456789.", 26)[:length-5]+suffix(t), ".")
		require.Len(t, name, length)
		labels := map[string]string{corev1.LabelHostname: "n" + suffix(t)} // a label is shorter than a name
		require.NoError(t, e.Cluster.AddNode(t.Context(), name, cluster.NodeOptions{Labels: labels}))
		t.Cleanup(func() { _ = e.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}) })
		return name
	}

	longest, tooLong := named(248), named(249)

	nm := e.maintain(t, longest)
	e.succeed(t, nm)
	e.requireOurs(t, longest)
	e.end(t, nm)
	require.Nil(t, e.lease(t, longest))

	before := e.getNode(t, tooLong)
	nm = e.maintain(t, tooLong)
	failed := e.until(t, nm, "Failed", inPhase(v1beta1.MaintenanceFailed))
	require.Contains(t, failed.Status.LastError, "lease name would be too long")
	require.Equal(t, "InvalidNodeName", conditionReason(failed.Status, v1beta1.ConditionStalled))
	e.end(t, nm)
	require.Equal(t, before.Spec, e.getNode(t, tooLong).Spec)
	require.Equal(t, 1, e.events(t, "NodeMaintenance", nm.Name)["FailedMaintenance"])
}
