// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

func requireRecent(t *testing.T, at *metav1.MicroTime) {
	t.Helper()
	require.NotNil(t, at)
	require.WithinDuration(t, time.Now(), at.Time, patience)
}

func TestALeaseIsRenewedAfterAThirdOfItsDuration(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	before := e.requireOurs(t, node)

	early := ago(19 * time.Minute)
	e.editLease(t, node, func(l *coordinationv1.Lease) { l.Spec.RenewTime = early })
	e.passed(t, nm)
	require.Equal(t, early.UnixMicro(), e.lease(t, node).Spec.RenewTime.UnixMicro(), "a third is not over yet")

	e.editLease(t, node, func(l *coordinationv1.Lease) { l.Spec.RenewTime = ago(21 * time.Minute) })
	e.within(t, time.Second, "the renewal", func() bool { return time.Since(e.lease(t, node).Spec.RenewTime.Time) < time.Minute })
	after := e.requireOurs(t, node)
	require.Equal(t, before.Spec.AcquireTime, after.Spec.AcquireTime)
	require.Equal(t, before.Spec.LeaseTransitions, after.Spec.LeaseTransitions)
	require.Equal(t, v1beta1.MaintenanceSucceeded, e.passed(t, nm).Status.Phase)
}

// The moment of the renewal comes by itself, without a wake by anything.
func TestALeaseIsRenewedWhenItsTimeComes(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	e.succeed(t, e.maintain(t, node))

	due := ago(20*time.Minute - 3*time.Second) // in 3 s a third is over
	e.editLease(t, node, func(l *coordinationv1.Lease) { l.Spec.RenewTime = due })

	e.within(t, 4*time.Second, "the renewal", func() bool { return e.lease(t, node).Spec.RenewTime.After(due.Add(time.Minute)) })
}

func TestALeaseThatIsDeletedIsMadeAgain(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	film := e.filmMaintenance(t, nm.Name)
	before := e.requireOurs(t, node)

	require.NoError(t, e.Delete(t.Context(), before))

	e.within(t, time.Second, "a new lease", func() bool { l := e.lease(t, node); return l != nil && l.UID != before.UID })
	e.requireOurs(t, node)
	e.passed(t, nm)
	for _, s := range film.all(t) {
		require.Zero(t, s.Status.ErrorOnLeaseCount)
		require.Equal(t, v1beta1.MaintenanceSucceeded, s.Status.Phase)
	}
}

func TestALeaseHasOneOwner(t *testing.T) {
	t.Parallel()
	e := shared
	node, other := e.node(t), e.node(t)
	e.succeed(t, e.maintain(t, node))

	e.editLease(t, node, func(l *coordinationv1.Lease) {
		n := e.getNode(t, other)
		l.OwnerReferences = append(l.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID})
	})

	e.within(t, time.Second, "the lease as we write it", func() bool { return len(e.lease(t, node).OwnerReferences) == 1 })
	e.requireOurs(t, node)
}
