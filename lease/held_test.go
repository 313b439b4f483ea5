// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/nodemaint/nodemaint/lease"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestHeld(t *testing.T) {
	bubble(t, func(t *testing.T, c *mt.Cluster, m *lease.Manager) {
		none, err := m.Held(t.Context())
		require.NoError(t, err)
		require.Empty(t, none)

		add := func(name, holder string, owners ...metav1.OwnerReference) {
			c.Add(&coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, OwnerReferences: owners},
				Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(holder)},
			})
		}
		node := func(name string) metav1.OwnerReference {
			return metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: name, UID: "uid-of-it"}
		}
		add("node-n2", ours, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "n2"}, node("N2"))
		add("node-n3", "them", node("n3"))
		add("node-n4", ours) // it has lost its owner
		add("node-n5", ours, node("n6"))
		add("leader", ours, node("n7"))
		add("node-", ours)

		held, err := m.Held(t.Context())
		require.NoError(t, err)
		uid := func(name string) types.UID { return c.Lease(ns, name).UID }
		require.Equal(t, []lease.Held{
			{Node: "N2", NodeUID: "uid-of-it", UID: uid("node-n2")}, {Node: "n4", UID: uid("node-n4")}, {Node: "n5", UID: uid("node-n5")},
		}, held)

		c.Fail(mt.On("list", "leases"), nil)
		_, err = m.Held(t.Context())
		require.ErrorContains(t, err, `listing the leases in namespace "`+ns)
	})
	_, err := lease.NewManager(nil, "", lease.Options{}).Held(t.Context())
	require.ErrorIs(t, err, lease.ErrNoHolder)
}
