// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/nodemaint/nodemaint/lease"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestAcquireRefused(t *testing.T) {
	forbidden := apierrors.NewForbidden(leases, "node-n1", errors.New("no right"))
	invalid := apierrors.NewInvalid(coordinationv1.SchemeGroupVersion.WithKind("Lease").GroupKind(), "node-n1", nil)
	fail := func(verb string, err error) func(*mt.Cluster) {
		return func(c *mt.Cluster) { c.Fail(mt.On(verb, "leases"), err) }
	}
	for _, tt := range []struct {
		reason       string
		began        bool          // we had the lease
		later        time.Duration // since then
		meet         func(*mt.Cluster)
		held, lapsed bool
	}{
		{"a create is forbidden and there never was a lease", false, 0, fail("create", forbidden), false, true},
		{"the namespace is being deleted", false, 0, func(c *mt.Cluster) { c.Add(mt.Namespace(ns)); c.TerminateNamespace(ns) }, false, true},
		{"the namespace may not be created", false, 0, func(c *mt.Cluster) { c.Fail(mt.On("create", "namespaces"), forbidden) }, false, true},
		{"a create is invalid", false, 0, fail("create", invalid), false, true},
		{"a renewal is forbidden while the last one counts", true, third, fail("update", forbidden), true, false},
		{"a renewal is invalid while the last one counts", true, third, fail("update", invalid), true, false},
		{"a renewal is forbidden and the last one has run out", true, time.Hour, fail("update", forbidden), false, true},
		{"it vanished, and a create is forbidden while our renewal counts", true, third, func(c *mt.Cluster) {
			c.DeleteLease(ns, "node-n1")
			fail("create", forbidden)(c)
		}, true, false},
		{"it vanished, and our last renewal has run out", true, time.Hour, func(c *mt.Cluster) {
			c.DeleteLease(ns, "node-n1")
			fail("create", forbidden)(c)
		}, false, true},
		{"another's has run out and may not be taken, though ours would still count", true, 20 * time.Minute, func(c *mt.Cluster) {
			c.EditLease(ns, "node-n1", func(l *coordinationv1.Lease) {
				l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = ptr.To("them"), ptr.To[int32](1)
			})
			fail("update", forbidden)(c)
		}, false, true},
		{"it may not be read while our renewal counts", true, third, fail("get", forbidden), true, false},
		{"it may not be read and our renewal has run out", true, time.Hour, fail("get", forbidden), false, true},
		{"it may not be read and nothing is known", false, 0, fail("get", forbidden), false, false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
				if tt.began {
					_, err := acquire(t, c, m)
					require.NoError(t, err)
					advance(tt.later)
				}
				tt.meet(c)

				_, err := acquire(t, c, m)

				var refused *lease.RefusedError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, "n1", refused.Node)
				require.Equal(t, tt.held, refused.Held)
				require.Equal(t, tt.lapsed, refused.Lapsed)
				require.ErrorContains(t, err, `lease of node "n1": the API server refuses: `)
				require.True(t, apierrors.IsForbidden(err) || apierrors.IsInvalid(err))
			})
		})
	}
}

func TestRefusedAfterRestart(t *testing.T) {
	bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
		_, err := acquire(t, c, m)
		require.NoError(t, err)
		advance(third)
		c.Fail(mt.On("update", "leases"), apierrors.NewForbidden(leases, "node-n1", errors.New("no right")))

		_, err = acquire(t, c, lease.NewManager(c.Client(), ours, lease.Options{}))

		var refused *lease.RefusedError
		require.ErrorAs(t, err, &refused)
		require.True(t, refused.Held, "the lease itself says until when it is ours")
	})
}

func TestOtherErrors(t *testing.T) {
	down := apierrors.NewInternalError(errors.New("down"))
	for _, tt := range []struct {
		verb, says string
		began      bool
	}{
		{"get", `getting lease of node "n1"`, false},
		{"create", `creating lease of node "n1"`, false},
		{"update", `updating lease of node "n1"`, true},
	} {
		t.Run(tt.verb, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
				if tt.began {
					_, err := acquire(t, c, m)
					require.NoError(t, err)
					advance(third)
				}
				c.Fail(mt.On(tt.verb, "leases"), down)
				_, err := acquire(t, c, m)
				require.ErrorContains(t, err, tt.says)
				require.True(t, apierrors.IsInternalError(err))
				var refused *lease.RefusedError
				require.False(t, errors.As(err, &refused))
			})
		})
	}
	bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
		c.Fail(mt.On("create", "namespaces"), down)
		_, err := acquire(t, c, m)
		require.ErrorContains(t, err, `creating namespace "medik8s-leases" for leases`)
	})
	bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
		_, err := m.Acquire(t.Context(), mt.Node(strings.Repeat("n", 249)))
		require.ErrorIs(t, err, lease.ErrNameTooLong)
		require.Empty(t, c.Requests())
	})
}
