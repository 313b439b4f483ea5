// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// An object that goes without a word while no operator runs leaves its node to the next one.
func TestGoneWhileNoOperatorRan(t *testing.T) {
	inWorld(t, func(w *world) {
		before := looks(w.Node("n1"))
		w.Add(objectFor("a", "n1"))
		w.await("held", func() bool { return w.status("a").Phase == v1beta1.MaintenanceSucceeded })
		w.end()
		mt.Edit(w.Cluster, "", "a", func(nm *v1beta1.NodeMaintenance) { nm.Finalizers = nil })
		mt.Delete[*v1beta1.NodeMaintenance](w.Cluster, "", "a")
		w.Fail(mt.On("list", "leases"), errors.New("not yet")).Times(3)
		w.boot()
		w.await("given back", func() bool { return w.Lease(leases, "node-n1") == nil })
		w.rest()
		require.Equal(t, before, looks(w.Node("n1")))
	}, aNode("n1"))
}

func TestLeftOver(t *testing.T) {
	held := []maintenance.Held{{Node: "n1", NodeUID: "node", UID: "lease"}}
	object := func(edit func(*v1beta1.NodeMaintenance)) v1beta1.NodeMaintenance {
		nm := anObject("a", "n1")
		edit(nm)
		return *nm
	}
	going := &metav1.Time{Time: time.Unix(1, 0)}
	for _, tc := range []struct {
		reason string
		edit   func(*v1beta1.NodeMaintenance) // of an object; nil for none
		left   bool
	}{
		{reason: "no object", left: true},
		{reason: "one that has yet to be adopted", edit: func(*v1beta1.NodeMaintenance) {}},
		{reason: "one for another node", edit: func(nm *v1beta1.NodeMaintenance) { nm.Spec.NodeName = "n2" }, left: true},
		{reason: "one that failed: its pass gave the node back", edit: func(nm *v1beta1.NodeMaintenance) {
			nm.Status.Phase = v1beta1.MaintenanceFailed
		}},
		{reason: "one that goes gives its node back itself", edit: func(nm *v1beta1.NodeMaintenance) {
			nm.DeletionTimestamp, nm.Finalizers = going, []string{v1beta1.Finalizer}
		}},
		{reason: "one that goes, our finalizer taken off, does not", edit: func(nm *v1beta1.NodeMaintenance) {
			nm.DeletionTimestamp, nm.Finalizers = going, []string{"example.com/other"}
		}, left: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var all []v1beta1.NodeMaintenance
			if tc.edit != nil {
				all = append(all, object(tc.edit))
			}
			left := leftOver(held, all)
			if !tc.left {
				require.Empty(t, left)
				return
			}
			require.Len(t, left, 1)
			require.Equal(t, "n1", left[0].Spec.NodeName)
			require.Equal(t, types.UID("lease"), left[0].UID)
			require.Equal(t, types.UID("node"), ownerUID(left[0]), "which tells whose events they are")
		})
	}
}

// A node that cannot be given back is tried again, and holds up no other.
func TestLeftOverIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, interceptor.Funcs{}, aNode("n1"), aNode("n2"))
		r.engine.broken = errors.New("away")
		looked := 0
		l := &leftovers{r.Reconciler, func(context.Context) ([]maintenance.Held, error) {
			looked++
			return []maintenance.Held{{Node: "n1", UID: "l1"}, {Node: "n2", UID: "l2"}}, nil
		}}
		require.NoError(t, l.Start(t.Context()))
		require.Equal(t, 2, looked)
		require.Equal(t, []string{"n2", "n1", "n2"}, r.engine.stopped)
	})
}

// An object that has come since the look has its node.
func TestLeftOverIsHandedOver(t *testing.T) {
	r := newRoom(t, interceptor.Funcs{}, aNode("n1"), anObject("a", "n1"))
	require.NoError(t, (&leftovers{Reconciler: r.Reconciler}).clearOne(t.Context(), anObject("was", "n1")))
	require.Empty(t, r.engine.stopped)
	require.NotEmpty(t, r.read("a").Finalizers)
}

func TestLeftoversEndWithTheOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, interceptor.Funcs{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		away := func(context.Context) ([]maintenance.Held, error) { return nil, errors.New("away") }
		require.NoError(t, (&leftovers{r.Reconciler, away}).Start(ctx))
		require.Error(t, ctx.Err())
	})
}
