// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// all matches every request for a resource.
func all(resource string) mt.Match {
	return func(r mt.Request) bool { return r.Resource == resource }
}

// A node is given back within 3 s of the delete, whatever its pass waits for.
func TestDeleteEndsAPassThatHangs(t *testing.T) {
	for _, resource := range []string{"poddisruptionbudgets", "daemonsets"} {
		t.Run(resource, func(t *testing.T) {
			inWorld(t, func(w *world) {
				before := looks(w.Node("n1"))
				w.AddBudget("shop", "web", app, 1)
				w.Hold(all(resource))
				w.Add(objectFor("a", "n1"))
				<-time.After(5 * time.Second) // it hangs by now

				began := time.Now()
				mt.Delete[*v1beta1.NodeMaintenance](w.Cluster, "", "a")
				w.await("gone", func() bool { return w.object("a") == nil })
				require.Less(t, time.Since(began), 3*time.Second)
				require.Equal(t, before, looks(w.Node("n1")))
			}, stage()...)
		})
	}
}

// Passes that hang do not keep all workers, of which this operator has two.
func TestPassesThatHangLeaveRoomForOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, node := range []string{"n1", "n2", "n3"} {
			w.Hold(mt.On("get", "nodes").Named("", node))
			w.Add(objectFor(node, node))
		}
		<-time.After(time.Second)
		w.Add(objectFor("free", "n4"))
		began := time.Now()
		w.await("succeeded", func() bool { return w.status("free").Phase == v1beta1.MaintenanceSucceeded })
		require.Less(t, time.Since(began), 3*time.Minute)
	}, mt.Node("n1"), mt.Node("n2"), mt.Node("n3"), mt.Node("n4"))
}

// see shows the operator that the object of that name changes as edit does, or, without one, that it is gone, and
// returns how many passes are asked for.
func (r *room) see(name string, edit func(*v1beta1.NodeMaintenance)) int {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	was := anObject(name, "n1")
	if edit == nil {
		r.passes.handler().Delete(r.t.Context(), event.DeleteEvent{Object: was}, q)
		return q.Len()
	}
	is := was.DeepCopy()
	edit(is)
	r.passes.handler().Update(r.t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: is}, q)
	return q.Len()
}

func going(nm *v1beta1.NodeMaintenance) { nm.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)} }

func TestWhatEndsAPass(t *testing.T) {
	for _, tc := range []struct {
		reason string
		name   string
		edit   func(*v1beta1.NodeMaintenance)
		ends   bool
	}{
		{reason: "it is going", name: "a", edit: going, ends: true},
		{reason: "it is gone", name: "a", ends: true},
		{reason: "its name is another's", name: "a", edit: func(nm *v1beta1.NodeMaintenance) { nm.UID = "again" }, ends: true},
		{reason: "it only changes", name: "a", edit: func(nm *v1beta1.NodeMaintenance) { nm.Spec.Reason = "other" }},
		{reason: "another is going", name: "b", edit: going},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			r := newRoom(t, interceptor.Funcs{}, aNode("n1"), anObject("a", "n1"))
			r.engine.during = func(ctx context.Context) error {
				asked := r.see(tc.name, tc.edit)
				require.Equal(t, tc.ends, ctx.Err() != nil)
				if tc.ends {
					require.Equal(t, 1, asked, "the next pass")
				}
				return ctx.Err()
			}
			require.NoError(t, r.reconcile("a"), "to be ended is no fault")
			require.Equal(t, tc.ends, r.read("a").Status.Phase == "", "the state is as before")
			r.engine.during = nil
			require.NoError(t, r.reconcile("a"))
			require.Equal(t, v1beta1.MaintenanceRunning, r.read("a").Status.Phase)
		})
	}
}

// The news that an object goes may come after it was read, and before its pass has begun.
func TestNewsBetweenReadAndPass(t *testing.T) {
	var r *room
	r = newRoom(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if _, ok := o.(*v1beta1.NodeMaintenance); ok {
				r.see("a", going)
			}
			return err
		},
	}, aNode("n1"), anObject("a", "n1"))
	r.engine.during = func(ctx context.Context) error { return ctx.Err() }
	require.NoError(t, r.reconcile("a"))
	require.Empty(t, r.read("a").Status.Phase)
}

// A Stop is not ended by more news of the same, and a pass that cannot be made is tried again after a pause.
func TestWhatIsNotEnded(t *testing.T) {
	r := newRoom(t, interceptor.Funcs{}, aNode("n1"), anObject("a", "n1"))
	r.engine.during = func(context.Context) error { return errors.New("away") }
	require.ErrorContains(t, r.reconcile("a"), "away")
	r.remove("a")
	r.engine.stopping = func(ctx context.Context) error {
		r.see("a", going)
		return ctx.Err()
	}
	require.NoError(t, r.reconcile("a"))
	require.Equal(t, []string{"n1"}, r.engine.stopped)
}

// The pause after a pass that failed grows, however often its node changes meanwhile; and what changed brings a pass
// once one does not fail.
func TestChangesDoNotShortenThePauseAfterAFailure(t *testing.T) {
	inWorld(t, func(w *world) {
		denied := w.Fail(mt.On("patch", "nodes"), nil)
		w.Add(objectFor("a", "n1"))
		for began := time.Now(); time.Since(began) < time.Minute; <-time.After(100 * time.Millisecond) {
			w.EditPod("shop", "web-0", func(p *corev1.Pod) { p.Labels["turn"] = time.Since(began).String() })
		}
		require.LessOrEqual(t, len(w.Matching(mt.On("patch", "nodes"))), 10, "0.1 s, doubled each time")
		require.Contains(t, w.status("a").LastError, "injected failure")
		denied.Remove()
		w.succeed()
		require.Empty(t, w.status("a").LastError)
	}, stage()...)
}

// A node that cannot be given back says so on its object, which waits.
// So is what a pass waited for until its time was over.
func TestAPassThatHangsIsTold(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Add(objectFor("a", "n1"))
		w.succeed()
		hangs := w.Hold(mt.On("update", "leases"))
		<-time.After(20 * time.Minute) // the lease is due
		w.await("told", func() bool { return w.status("a").LastError != "" })
		w.await("not believed", func() bool { return w.status("a").Phase == v1beta1.MaintenanceRunning })
		<-time.After(40 * time.Minute)
		w.await("refused", func() bool {
			return reasonOf(w.status("a"), v1beta1.ConditionLeaseHeld) == v1beta1.ReasonRefused
		})
		hangs.Release()
		w.await("succeeded", func() bool { return w.status("a").Phase == v1beta1.MaintenanceSucceeded })
		require.Empty(t, w.status("a").LastError)
	}, stage()...)
}

func TestChangesOfAnObjectThatGoesAskForNothing(t *testing.T) {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	was := anObject("a", "n1")
	going(was)
	is := was.DeepCopy()
	is.Status.LastError = "its node cannot be given back"
	e := event.UpdateEvent{ObjectOld: was, ObjectNew: is}
	newPasses().handler().Update(t.Context(), e, q)
	require.Zero(t, q.Len())
	require.False(t, notOnlyStatus().Update(e))
}

// The pause between two tries grows, whatever is written about them.
func TestTriesToGiveANodeBackBecomeRare(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Add(objectFor("a", "n1"))
		w.succeed()
		tries := 0
		w.OnRequest(func(r mt.Request) error {
			if mt.On("patch", "nodes")(r) {
				tries++
				return fmt.Errorf("request %d is denied", tries) // each has words of its own
			}
			return w.witness(r)
		})
		mt.Delete[*v1beta1.NodeMaintenance](w.Cluster, "", "a")
		<-time.After(5 * time.Minute)
		require.Less(t, tries, 20)
	}, stage()...)
}

func TestWhyANodeIsNotGivenBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Add(objectFor("a", "n1"))
		w.succeed()
		denied := w.Fail(mt.On("patch", "nodes"), nil)
		mt.Delete[*v1beta1.NodeMaintenance](w.Cluster, "", "a")
		w.await("told", func() bool { return strings.Contains(w.status("a").LastError, "injected failure") })
		denied.Remove()
		w.await("gone", func() bool { return w.object("a") == nil })
		require.False(t, w.Node("n1").Spec.Unschedulable)
	}, stage()...)
}
