// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/nodemaint/nodemaint/lease"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// watched runs f with a Manager that has the lease of n1 and watches it.
func watched(t *testing.T, f func(t *testing.T, c *mt.Cluster, m *lease.Manager, wakes *atomic.Int32)) {
	t.Helper()
	bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		_, err := acquire(t, c, m)
		require.NoError(t, err)
		var wakes atomic.Int32
		m.Watch(ctx, "n1", func() { wakes.Add(1) })
		synctest.Wait()
		c.ClearRequests()
		f(t, c, m, &wakes)
	})
}

func TestWatchSparesRequests(t *testing.T) {
	watched(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager, _ *atomic.Int32) {
		grant, err := acquire(t, c, m)
		require.NoError(t, err)
		require.True(t, grant.Resumed)
		require.Empty(t, c.Requests(), "unchanged and fresh: no request")

		advance(third)
		c.ClearRequests()
		_, err = acquire(t, c, m)
		require.NoError(t, err)
		require.Len(t, c.Requests(), 1, "due: the update and nothing else")
		require.Len(t, c.Matching(mt.On("update", "leases")), 1)
	})
}

func TestWatchWakes(t *testing.T) {
	watched(t, func(t *testing.T, c *mt.Cluster, _ *lease.Manager, wakes *atomic.Int32) {
		wakes.Store(0)
		c.EditLease(ns, "node-n1", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("them") })
		synctest.Wait()
		require.EqualValues(t, 1, wakes.Load())
		theirsElsewhere := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "node-n2"}}
		c.Add(theirsElsewhere)
		synctest.Wait()
		require.EqualValues(t, 1, wakes.Load(), "another node's lease is none of ours")
		c.DeleteLease(ns, "node-n1")
		synctest.Wait()
		require.EqualValues(t, 2, wakes.Load())
	})
}

func TestVerdictRestsOnALiveRead(t *testing.T) {
	give := func(holder string) func(*coordinationv1.Lease) {
		return func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.RenewTime = &holder, ptr.To(metav1.NowMicro())
		}
	}
	t.Run("the copy says that it is another's, but it is ours", func(t *testing.T) {
		watched(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager, _ *atomic.Int32) {
			c.EditLease(ns, "node-n1", give("them"))
			synctest.Wait()
			c.PauseWatches("leases")
			defer c.ResumeWatches("leases")
			c.EditLease(ns, "node-n1", give(ours))
			_, err := acquire(t, c, m)
			require.NoError(t, err)
		})
	})
	t.Run("the copy says that it has run out, but its holder renewed it", func(t *testing.T) {
		watched(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager, _ *atomic.Int32) {
			c.EditLease(ns, "node-n1", give("them"))
			synctest.Wait()
			advance(2 * time.Hour)
			c.PauseWatches("leases")
			defer c.ResumeWatches("leases")
			c.EditLease(ns, "node-n1", give("them"))
			before := c.Lease(ns, "node-n1")
			_, err := acquire(t, c, m)
			var held *lease.HeldError
			require.ErrorAs(t, err, &held)
			require.Equal(t, before, c.Lease(ns, "node-n1"))
		})
	})
	t.Run("the copy lacks it, but it is ours", func(t *testing.T) {
		watched(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager, _ *atomic.Int32) {
			c.DeleteLease(ns, "node-n1")
			synctest.Wait()
			c.PauseWatches("leases")
			defer c.ResumeWatches("leases")
			_, err := acquire(t, c, lease.NewManager(c.Client(), ours, lease.Options{}))
			require.NoError(t, err)
			grant, err := acquire(t, c, m)
			require.NoError(t, err, "the collision is looked at")
			require.True(t, grant.Resumed)
		})
	})
	t.Run("the copy lags behind our own renewal", func(t *testing.T) {
		watched(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager, _ *atomic.Int32) {
			advance(third)
			c.PauseWatches("leases")
			defer c.ResumeWatches("leases")
			_, err := acquire(t, c, m)
			require.NoError(t, err)
			c.ClearRequests()
			_, err = acquire(t, c, m)
			require.NoError(t, err, "a conflict and a look")
			require.Len(t, c.Matching(mt.On("get", "leases")), 1)
		})
	})
	t.Run("the copy is from before a release", func(t *testing.T) {
		watched(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager, _ *atomic.Int32) {
			c.PauseWatches("leases")
			defer c.ResumeWatches("leases")
			require.NoError(t, m.Release(t.Context(), "n1"))
			grant, err := acquire(t, c, m)
			require.NoError(t, err)
			require.False(t, grant.Resumed)
			require.NotNil(t, c.Lease(ns, "node-n1"))
		})
	})
	t.Run("the watch is broken", func(t *testing.T) {
		watched(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager, wakes *atomic.Int32) {
			c.Fail(mt.On("watch", "leases"), nil)
			c.Fail(mt.On("list", "leases"), nil)
			wakes.Store(0)
			c.CloseWatches("leases")
			synctest.Wait()
			require.NotZero(t, wakes.Load(), "a watch that breaks wakes")
			c.ClearRequests()
			_, err := acquire(t, c, m)
			require.NoError(t, err)
			require.Len(t, c.Matching(mt.On("get", "leases")), 1)
		})
	})
}

func TestWatchEnds(t *testing.T) {
	bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
		_, err := acquire(t, c, m)
		require.NoError(t, err)
		ctx1, cancel1 := context.WithCancel(t.Context())
		m.Watch(ctx1, "n1", func() {})
		ctx2, cancel2 := context.WithCancel(t.Context())
		m.Watch(ctx2, "n1", func() {})
		cancel1()
		synctest.Wait()
		c.ClearRequests()
		_, err = acquire(t, c, m)
		require.NoError(t, err)
		require.Empty(t, c.Requests(), "the later watch took the earlier one's place")

		cancel2()
		_, err = acquire(t, c, m)
		require.NoError(t, err)
		require.Len(t, c.Requests(), 1, "from the end of its context a watch is not believed")
		synctest.Wait()
		require.Zero(t, c.Watches("leases"))
	})
}

func TestWhatSomebodyChangedIsMendedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
		for range 3 {
			_, err := acquire(t, c, m)
			require.NoError(t, err)
			c.EditLease(ns, "node-n1", func(l *coordinationv1.Lease) { l.OwnerReferences = nil })
			grant, err := acquire(t, c, m)
			require.NoError(t, err)
			require.Len(t, c.Lease(ns, "node-n1").OwnerReferences, 1)
			advance(grant.RenewIn)
		}
	})
}

// TestWhoSaysOtherwiseIsNotArguedWith has somebody else say what our lease should be like, and each hear of the
// other's writes at once: nobody writes it before it is due, and it never runs out.
func TestWhoSaysOtherwiseIsNotArguedWith(t *testing.T) {
	for _, tt := range []struct {
		reason string
		wanted []time.Duration // by managers of one holder
		meddle bool
	}{
		{"another manager of our holder", []time.Duration{time.Hour, 10 * time.Minute}, false},
		{"somebody who changes all that we write", []time.Duration{time.Hour}, true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *mt.Cluster, _ *lease.Manager) {
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				writes := func(r mt.Request) bool { return tt.meddle && r.Write() && c.Lease(ns, "node-n1") != nil }
				c.Then(writes, func() {
					c.EditLease(ns, "node-n1", func(l *coordinationv1.Lease) {
						l.OwnerReferences, l.Spec.LeaseDurationSeconds = nil, ptr.To[int32](600)
					})
				})
				woken, due := make([]atomic.Bool, len(tt.wanted)), make([]time.Time, len(tt.wanted))
				var managers []*lease.Manager
				for i, d := range tt.wanted {
					m := lease.NewManager(c.Client(), ours, lease.Options{Duration: d})
					m.Watch(ctx, "n1", func() { woken[i].Store(true) })
					managers = append(managers, m)
				}
				for began := time.Now(); time.Since(began) < time.Hour; advance(time.Second) {
					for i, m := range managers {
						if !woken[i].Swap(false) && time.Now().Before(due[i]) {
							continue
						}
						grant, err := acquire(t, c, m)
						require.NoError(t, err)
						due[i] = time.Now().Add(grant.RenewIn)
						synctest.Wait()
					}
					l := c.Lease(ns, "node-n1").Spec
					require.Less(t, time.Since(l.RenewTime.Time), time.Duration(*l.LeaseDurationSeconds)*time.Second)
				}
				require.Less(t, len(c.Matching(mt.On("update", "leases"))), 40, "one or two each third of ten minutes")
			})
		})
	}
}

// A copy that shows another's lease is not believed without a read. What we knew before is not either.
func TestAnothersByTheCopyThatMayNotBeRead(t *testing.T) {
	watched(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager, _ *atomic.Int32) {
		c.EditLease(ns, "node-n1", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("them") })
		synctest.Wait()
		c.Fail(mt.On("get", "leases"), apierrors.NewForbidden(leases, "node-n1", errors.New("no right")))
		_, err := acquire(t, c, m)
		var refused *lease.RefusedError
		require.ErrorAs(t, err, &refused)
		require.False(t, refused.Held, "another may act by now")
		require.False(t, refused.Lapsed, "and it may be ours still")
		require.ErrorContains(t, err, "no right")
	})
}
