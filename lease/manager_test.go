// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/nodemaint/nodemaint/lease"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

const (
	ns    = lease.DefaultNamespace
	ours  = "node-maintenance"
	third = 20 * time.Minute
)

var leases = coordinationv1.Resource("leases")

// bubble runs f with a cluster that has the node n1, and a Manager of it.
func bubble(t *testing.T, f func(t *testing.T, c *mt.Cluster, m *lease.Manager)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := mt.New(mt.Options{}, mt.Node("n1"))
		defer c.Close()
		f(t, c, lease.NewManager(c.Client(), ours, lease.Options{}))
	})
}

// theirs puts a lease of n1 there that another holder renewed at that time.
func theirs(c *mt.Cluster, renewed time.Time, edits ...func(*coordinationv1.Lease)) {
	stamp := metav1.NewMicroTime(renewed)
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "node-n1"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("them"), LeaseDurationSeconds: ptr.To[int32](600),
			AcquireTime: &stamp, RenewTime: &stamp, LeaseTransitions: ptr.To[int32](2),
		},
	}
	for _, f := range edits {
		f(l)
	}
	c.Add(l)
}

func acquire(t *testing.T, c *mt.Cluster, m *lease.Manager) (lease.Grant, error) {
	return m.Acquire(t.Context(), c.Node("n1"))
}

func TestAcquireAbsent(t *testing.T) {
	bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
		require.Nil(t, c.Namespace(ns))

		grant, err := acquire(t, c, m)

		require.NoError(t, err)
		require.Equal(t, lease.Grant{RenewIn: third, Expires: time.Now().Add(3 * third)}, grant)
		require.NotNil(t, c.Namespace(ns), "the namespace is created if missing")
		l := c.Lease(ns, "node-n1")
		require.Equal(t, ours, *l.Spec.HolderIdentity)
		require.Equal(t, int32(3600), *l.Spec.LeaseDurationSeconds)
		require.Equal(t, int32(0), *l.Spec.LeaseTransitions)
		require.True(t, time.Now().Equal(l.Spec.RenewTime.Time))
		require.Equal(t, l.Spec.RenewTime, l.Spec.AcquireTime)
		require.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: c.Node("n1").UID}}, l.OwnerReferences)
	})
}

func TestAcquireKeepsAndRenews(t *testing.T) {
	bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
		_, err := acquire(t, c, m)
		require.NoError(t, err)
		first := c.Lease(ns, "node-n1")

		advance(third - time.Second)
		c.ClearRequests()
		grant, err := acquire(t, c, m)
		require.NoError(t, err)
		require.Equal(t, lease.Grant{RenewIn: time.Second, Expires: time.Now().Add(2*third + time.Second), Resumed: true}, grant)
		require.Empty(t, c.Writes(), "fresh: nothing is owed")

		advance(time.Second)
		grant, err = acquire(t, c, m)
		require.NoError(t, err)
		require.Equal(t, lease.Grant{RenewIn: third, Expires: time.Now().Add(3 * third), Resumed: true}, grant)
		l := c.Lease(ns, "node-n1")
		require.True(t, time.Now().Equal(l.Spec.RenewTime.Time))
		require.Equal(t, first.Spec.AcquireTime, l.Spec.AcquireTime)
		require.Equal(t, int32(0), *l.Spec.LeaseTransitions)

		advance(5 * time.Hour)
		grant, err = acquire(t, c, m)
		require.NoError(t, err, "run out, but nobody took it")
		require.True(t, grant.Resumed)
		require.Equal(t, int32(0), *c.Lease(ns, "node-n1").Spec.LeaseTransitions)

		c.DeleteLease(ns, "node-n1")
		grant, err = acquire(t, c, m)
		require.NoError(t, err, "gone although ours: created again")
		require.False(t, grant.Resumed)
		require.NotNil(t, c.Lease(ns, "node-n1"))
	})
}

func TestAcquireRepairsOwner(t *testing.T) {
	bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
		_, err := acquire(t, c, m)
		require.NoError(t, err)
		c.DeleteNode("n1")
		c.Add(mt.Node("n1"))

		_, err = acquire(t, c, m)

		require.NoError(t, err)
		require.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: c.Node("n1").UID}},
			c.Lease(ns, "node-n1").OwnerReferences)
	})
}

func TestAcquireForeign(t *testing.T) {
	for _, tt := range []struct {
		reason  string
		renewed time.Duration // from now
		edit    func(*coordinationv1.Lease)
		held    bool
	}{
		{reason: "valid", renewed: -time.Minute, held: true},
		{reason: "renewed in the future: a clock is ahead", renewed: time.Hour, held: true},
		{reason: "expired", renewed: -10 * time.Minute},
		{reason: "without a renewTime", edit: func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil }},
		{reason: "without a duration", edit: func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = nil }},
		{reason: "without a holder", edit: func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil }},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
				edit := tt.edit
				if edit == nil {
					edit = func(*coordinationv1.Lease) {}
				}
				theirs(c, time.Now().Add(tt.renewed), edit)
				before := c.Lease(ns, "node-n1")

				grant, err := acquire(t, c, m)

				after := c.Lease(ns, "node-n1")
				if tt.held {
					var held *lease.HeldError
					require.ErrorAs(t, err, &held)
					require.Equal(t, "them", held.Holder)
					require.Equal(t, "n1", held.Node)
					require.True(t, time.Now().Add(tt.renewed).Add(10*time.Minute).Equal(held.Expires))
					require.ErrorContains(t, err, `lease of node "n1" is held by "them" until `)
					require.Equal(t, before, after)
					require.NoError(t, m.Release(t.Context(), "n1"))
					require.Equal(t, before, c.Lease(ns, "node-n1"), "a foreign lease is left alone")
					return
				}
				require.NoError(t, err)
				require.False(t, grant.Resumed)
				require.Equal(t, ours, *after.Spec.HolderIdentity)
				require.Equal(t, int32(3), *after.Spec.LeaseTransitions)
				require.True(t, time.Now().Equal(after.Spec.AcquireTime.Time))
				require.Len(t, after.OwnerReferences, 1)
			})
		})
	}
}

func TestAcquireCollides(t *testing.T) {
	conflict := apierrors.NewConflict(leases, "node-n1", errors.New("somebody was faster"))
	for _, tt := range []struct {
		reason string
		began  bool // the lease is ours and due
		meet   func(c *mt.Cluster)
		held   bool
	}{
		{"a conflict on a renewal", true, func(c *mt.Cluster) { c.Fail(mt.On("update", "leases"), conflict).Times(3) }, false},
		{"it vanishes before the renewal", true, func(c *mt.Cluster) { once(c, "update", func() { c.DeleteLease(ns, "node-n1") }) }, false},
		{"another takes it before the renewal", true, func(c *mt.Cluster) {
			once(c, "update", func() {
				c.EditLease(ns, "node-n1", func(l *coordinationv1.Lease) {
					l.Spec.HolderIdentity, l.Spec.RenewTime = ptr.To("them"), ptr.To(metav1.NowMicro())
				})
			})
		}, true},
		{"another creates it first", false, func(c *mt.Cluster) { once(c, "create", func() { theirs(c, time.Now()) }) }, true},
		{"we created it, but the answer was lost", false, func(c *mt.Cluster) {
			c.Lose(mt.On("create", "leases"), apierrors.NewAlreadyExists(leases, "node-n1")).Times(1)
		}, false},
		{"another creates the namespace first", false, func(c *mt.Cluster) {
			once(c, "create", func() {})
			c.Lose(mt.On("create", "namespaces"), apierrors.NewAlreadyExists(corev1.Resource("namespaces"), ns)).Times(1)
		}, false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
				if tt.began {
					_, err := acquire(t, c, m)
					require.NoError(t, err)
					advance(third)
				}
				tt.meet(c)

				_, err := acquire(t, c, m)

				if tt.held {
					var held *lease.HeldError
					require.ErrorAs(t, err, &held)
					require.Equal(t, "them", *c.Lease(ns, "node-n1").Spec.HolderIdentity)
					return
				}
				require.NoError(t, err)
				require.Equal(t, ours, *c.Lease(ns, "node-n1").Spec.HolderIdentity)
				require.True(t, time.Since(c.Lease(ns, "node-n1").Spec.RenewTime.Time) < time.Second)
			})
		})
	}
}

// once plays somebody who acts just before our first request of that verb for a lease.
func once(c *mt.Cluster, verb string, act func()) {
	done := false
	c.OnRequest(func(r mt.Request) error {
		if r.Resource == "leases" && r.Verb == verb && !done {
			done = true
			act()
		}
		return nil
	})
}

func TestDurationThatNoLeaseCanHave(t *testing.T) {
	for _, d := range []time.Duration{-time.Hour, time.Millisecond, 100 * 365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			c := mt.New(mt.Options{}, mt.Node("n1"))
			defer c.Close()
			grant, err := acquire(t, c, lease.NewManager(c.Client(), ours, lease.Options{Duration: d}))
			require.NoError(t, err)
			require.Equal(t, third, grant.RenewIn)
			require.Equal(t, int32(3600), *c.Lease(ns, "node-n1").Spec.LeaseDurationSeconds, "%s", d)
		})
	}
}

func TestOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mt.New(mt.Options{}, mt.Node("Worker-1"))
		defer c.Close()
		m := lease.NewManager(c.Client(), "me", lease.Options{Namespace: "locks", Duration: 30 * time.Second})
		require.Equal(t, "me", m.Holder())

		grant, err := m.Acquire(t.Context(), c.Node("Worker-1"))

		require.NoError(t, err)
		require.Equal(t, 10*time.Second, grant.RenewIn)
		l := c.Lease("locks", "node-worker-1")
		require.Equal(t, int32(30), *l.Spec.LeaseDurationSeconds)
		require.Equal(t, "me", *l.Spec.HolderIdentity)
		require.Equal(t, "Worker-1", l.OwnerReferences[0].Name, "the owner is the node by its own name")
	})
}

// advance lets the bubble's time pass.
func advance(d time.Duration) { <-time.After(d) }

func ExampleManager() {
	c := mt.New(mt.Options{}, mt.Node("n1"))
	defer c.Close()
	us := lease.NewManager(c.Client(), "us", lease.Options{})
	them := lease.NewManager(c.Client(), "them", lease.Options{})
	ctx := context.Background()

	_, err := us.Acquire(ctx, c.Node("n1"))
	fmt.Println("ours:", err == nil)
	_, err = them.Acquire(ctx, c.Node("n1"))
	var held *lease.HeldError
	fmt.Println("theirs:", !errors.As(err, &held), "- held by", held.Holder)
	fmt.Println("released:", us.Release(ctx, "n1") == nil)
	_, err = them.Acquire(ctx, c.Node("n1"))
	fmt.Println("theirs:", err == nil)
	// Output:
	// ours: true
	// theirs: false - held by us
	// released: true
	// theirs: true
}

func TestAcquireWithoutAHolder(t *testing.T) {
	c := mt.New(mt.Options{}, mt.Node("n1"))
	defer c.Close()
	_, err := lease.NewManager(c.Client(), "", lease.Options{}).Acquire(t.Context(), c.Node("n1"))
	require.ErrorIs(t, err, lease.ErrNoHolder)
	require.Empty(t, c.Requests())
}

// Who waits for another call that creates the namespace does not wait longer than its own context.
func TestWaitingForTheNamespaceEndsWithTheContext(t *testing.T) {
	bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
		c.Add(mt.Node("n2"))
		hung := c.Hold(mt.On("create", "namespaces"))
		first := make(chan error, 1)
		go func() {
			_, err := m.Acquire(t.Context(), c.Node("n1"))
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := m.Acquire(ctx, c.Node("n2"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "creating namespace")
		require.Equal(t, time.Second, time.Since(began))

		hung.Release()
		require.NoError(t, <-first)
		_, err = m.Acquire(t.Context(), c.Node("n2"))
		require.NoError(t, err)
	})
}
