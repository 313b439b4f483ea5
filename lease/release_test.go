// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/nodemaint/nodemaint/lease"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestRelease(t *testing.T) {
	bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
		require.NoError(t, m.Release(t.Context(), "n1"), "absent")
		_, err := acquire(t, c, m)
		require.NoError(t, err)
		l := c.Lease(ns, "node-n1")
		c.ClearRequests()

		require.NoError(t, m.Release(t.Context(), "n1"))

		require.Nil(t, c.Lease(ns, "node-n1"))
		require.Len(t, c.Writes(), 1)
		require.Equal(t, metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}, *c.Writes()[0].Preconditions)
	})
}

func TestReleaseMeets(t *testing.T) {
	for _, tt := range []struct {
		reason string
		meet   func(c *mt.Cluster)
		left   string // holder
		says   string
	}{
		{"a change of the lease: the new one is read", func(c *mt.Cluster) {
			once(c, "delete", func() {
				c.EditLease(ns, "node-n1", func(l *coordinationv1.Lease) { l.Labels = map[string]string{"a": "b"} })
			})
		}, "", ""},
		{"another who takes it: it stays", func(c *mt.Cluster) {
			once(c, "delete", func() {
				c.EditLease(ns, "node-n1", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("them") })
			})
		}, "them", ""},
		{"another who deletes it and makes a new one: it stays", func(c *mt.Cluster) {
			once(c, "delete", func() { c.DeleteLease(ns, "node-n1"); theirs(c, time.Now()) })
		}, "them", ""},
		{"another who deletes it", func(c *mt.Cluster) { once(c, "delete", func() { c.DeleteLease(ns, "node-n1") }) }, "", ""},
		{"a server that is away", func(c *mt.Cluster) { c.Fail(mt.On("delete", "leases"), nil) }, ours, `deleting lease of node "n1"`},
		{"a server that cannot read", func(c *mt.Cluster) { c.Fail(mt.On("get", "leases"), nil) }, ours, `getting lease of node "n1"`},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
				_, err := acquire(t, c, m)
				require.NoError(t, err)
				tt.meet(c)
				err = m.Release(t.Context(), "n1")
				if tt.says != "" {
					require.ErrorContains(t, err, tt.says)
				} else {
					require.NoError(t, err)
				}
				if l := c.Lease(ns, "node-n1"); tt.left == "" {
					require.Nil(t, l)
				} else {
					require.Equal(t, tt.left, *l.Spec.HolderIdentity)
				}
			})
		})
	}
}
