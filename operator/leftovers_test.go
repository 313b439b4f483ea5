// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// gone lets the operator end, and object a go without a word; more may happen before the next one begins.
func (w *world) gone(more ...func()) {
	w.Add(objectFor("a", "n1"))
	w.await("held", func() bool { return w.status("a").Phase == v1beta1.MaintenanceSucceeded })
	w.end()
	mt.Edit(w.Cluster, "", "a", func(nm *v1beta1.NodeMaintenance) { nm.Finalizers = nil })
	mt.Delete[*v1beta1.NodeMaintenance](w.Cluster, "", "a")
	for _, f := range more {
		f()
	}
	w.boot()
}

// An object that goes without a word while no operator runs leaves its node to the next one.
func TestGoneWhileNoOperatorRan(t *testing.T) {
	inWorld(t, func(w *world) {
		before := looks(w.Node("n1"))
		w.gone(func() { w.Fail(mt.On("list", "leases"), errors.New("not yet")).Times(3) })
		w.await("given back", func() bool { return w.Lease(leases, "node-n1") == nil })
		w.rest()
		require.Equal(t, before, looks(w.Node("n1")))
		events := mt.LookAll[*corev1.Event](w.Cluster)
		uncordoned := 0
		for _, e := range events {
			if e.Reason == "UncordonNode" && e.InvolvedObject.Name == "n1" && e.InvolvedObject.UID == w.Node("n1").UID {
				uncordoned++
			}
		}
		require.Equal(t, 1, uncordoned)
	}, aNode("n1"))
}

// Whatever write of giving it back is the operator's last, the next operator goes on.
func TestGoneWhileNoOperatorRanAndTheNextOneCrashes(t *testing.T) {
	for n := 1; n <= 4; n++ { // the label, the event, the rest, the lease
		inWorld(t, func(w *world) {
			before := looks(w.Node("n1"))
			w.gone(func() {
				w.ClearRequests()
				w.crash = w.CrashAfter(n)
			})
			w.await("given back", func() bool { return w.crash == nil && w.Lease(leases, "node-n1") == nil })
			w.rest()
			require.Equal(t, before, looks(w.Node("n1")))
		}, aNode("n1"))
	}
}

// The next object for a node without a record takes its marks for ours as long as the lease is: it must not go before.
func TestGoneWithoutARecord(t *testing.T) {
	inWorld(t, func(w *world) {
		before := looks(w.Node("n1"))
		w.gone(func() {
			w.EditNode("n1", func(n *corev1.Node) { delete(n.Annotations, maintenance.RecordAnnotation) })
		})
		w.rest()
		require.NotNil(t, w.Lease(leases, "node-n1"))
		w.Add(objectFor("b", "n1"))
		w.await("taken over", func() bool { return w.status("b").Phase == v1beta1.MaintenanceSucceeded })
		mt.Delete[*v1beta1.NodeMaintenance](w.Cluster, "", "b")
		w.await("gone", func() bool { return w.object("b") == nil })
		require.Equal(t, before, looks(w.Node("n1")))
	}, aNode("n1"))
}

func TestWantedFor(t *testing.T) {
	going := &metav1.Time{Time: time.Unix(1, 0)}
	for _, tc := range []struct {
		reason string
		edit   func(*v1beta1.NodeMaintenance)
		wanted bool
	}{
		{"one that has yet to be adopted", func(*v1beta1.NodeMaintenance) {}, true},
		{"one for another node", func(nm *v1beta1.NodeMaintenance) { nm.Spec.NodeName = "n2" }, false},
		{"one that failed sees to nothing any more", func(nm *v1beta1.NodeMaintenance) {
			nm.Status.Phase = v1beta1.MaintenanceFailed
		}, false},
		{"one that goes gives its node back itself", func(nm *v1beta1.NodeMaintenance) {
			nm.DeletionTimestamp, nm.Finalizers = going, []string{v1beta1.Finalizer}
		}, true},
		{"one that goes, our finalizer taken off, does not", func(nm *v1beta1.NodeMaintenance) {
			nm.DeletionTimestamp, nm.Finalizers = going, []string{"example.com/other"}
		}, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			nm := anObject("a", "n1")
			tc.edit(nm)
			require.Equal(t, tc.wanted, len(wantedFor("n1", []v1beta1.NodeMaintenance{*nm})) > 0)
		})
	}
}

// heldNodes says that these nodes are held, and counts how often it is asked.
func heldNodes(asked *int, nodes ...string) func(context.Context) ([]maintenance.Held, error) {
	return func(context.Context) ([]maintenance.Held, error) {
		*asked++
		var out []maintenance.Held
		for _, n := range nodes {
			out = append(out, maintenance.Held{Node: n, UID: types.UID("lease-of-" + n)})
		}
		return out, nil
	}
}

// A node that cannot be given back is tried again, and no other is, nor what is held since.
func TestLeftOverIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, interceptor.Funcs{}, aNode("n1"), aNode("n2"))
		r.engine.broken = errors.New("away")
		asked := 0
		require.NoError(t, (&leftovers{r.Reconciler, heldNodes(&asked, "n1", "n2")}).Start(t.Context()))
		require.Equal(t, []string{"n2", "n1"}, r.engine.stopped)
		require.Equal(t, 1, asked)
	})
}

// An object that stands when the operator begins may go without a word before its first pass, of which nobody but
// the look for leftovers would know.
func TestGoneBeforeItsFirstPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		adopted := anObject("a", "n1")
		adopted.Finalizers, adopted.OwnerReferences = []string{v1beta1.Finalizer}, []metav1.OwnerReference{ownerReference(aNode("n1"))}
		r := newRoom(t, interceptor.Funcs{}, aNode("n1"), aNode("n2"), adopted, anObject("b", "n2"))
		asked := 0
		done := make(chan error, 1)
		go func() { done <- (&leftovers{r.Reconciler, heldNodes(&asked, "n1", "n2")}).Start(t.Context()) }()
		<-time.After(time.Second)
		require.NoError(t, r.reconcile("b"))
		now := r.read("a")
		now.Finalizers = nil
		require.NoError(t, r.client.Update(t.Context(), now))
		r.remove("a")
		require.NoError(t, r.reconcile("a"))
		require.NoError(t, <-done)
		require.Equal(t, []string{"n1"}, r.engine.stopped)
	})
}

// An object that has come since the look has its node.
func TestLeftOverIsHandedOver(t *testing.T) {
	r := newRoom(t, interceptor.Funcs{}, aNode("n1"), anObject("a", "n1"))
	known, err := (&leftovers{Reconciler: r.Reconciler}).clearOne(t.Context(), maintenance.Held{Node: "n1"}, nil)
	require.NoError(t, err)
	require.True(t, known)
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

// Between the look for who acts and the hand-over an object may be made again under its name, for another node.
func TestHandOverToANameThatIsAnothers(t *testing.T) {
	r := newRoom(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		err := c.Get(ctx, key, o, opts...)
		if nm, ok := o.(*v1beta1.NodeMaintenance); ok {
			nm.Spec.NodeName = "n2"
		}
		return err
	}}, aNode("n1"), anObject("b", "n1"))
	require.ErrorContains(t, r.leave(t.Context(), "n1"), `is for node "n2" now`)
	require.Empty(t, r.engine.stopped)
}
