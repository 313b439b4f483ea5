// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

// engine notes what it is asked for and answers that maintenance goes on.
type engine struct {
	started, stopped, watched []string
	broken                    error                       // what Stop answers once; nil for nothing
	watching                  context.Context             // of the last Watch
	during, stopping          func(context.Context) error // what happens in a Start or a Stop; nil for nothing
}

func (e *engine) Start(ctx context.Context, node string, prior maintenance.State) (maintenance.State, error) {
	e.started = append(e.started, node)
	if e.during != nil {
		if err := e.during(ctx); err != nil {
			prior.Phase, prior.Error = cmp.Or(prior.Phase, maintenance.Running), err.Error()
			return prior, err
		}
	}
	return maintenance.State{Phase: maintenance.Running, Lease: maintenance.LeaseHeld}, nil
}

func (e *engine) Stop(ctx context.Context, node string) (maintenance.Restored, error) {
	if objectFrom(ctx) == nil {
		return maintenance.Restored{}, errors.New("no step of it could be told")
	}
	if err := e.broken; err != nil {
		e.broken = nil
		return maintenance.Restored{}, err
	}
	if e.stopping != nil {
		if err := e.stopping(ctx); err != nil {
			return maintenance.Restored{}, err
		}
	}
	e.stopped = append(e.stopped, node)
	return maintenance.Restored{}, nil
}

func (e *engine) Watch(ctx context.Context, node string) (<-chan struct{}, error) {
	e.watched, e.watching = append(e.watched, node), ctx
	return make(chan struct{}), nil
}

// wakes says whether the last Watch lives.
func (e *engine) wakes() bool { return e.watching != nil && e.watching.Err() == nil }

// room is a Reconciler with a fake API server, which may be made to answer otherwise, and an engine that only notes.
type room struct {
	*Reconciler
	engine *engine
	t      *testing.T
}

func newRoom(t *testing.T, answers interceptor.Funcs, objects ...client.Object) *room {
	c := fake.NewClientBuilder().WithScheme(webhookScheme(t)).WithStatusSubresource(&v1beta1.NodeMaintenance{}).
		WithIndex(&v1beta1.NodeMaintenance{}, byNode, nodeOf).WithInterceptorFuncs(answers).WithObjects(objects...).Build()
	e := &engine{}
	r := &Reconciler{
		client: c, index: &index{}, live: c, engine: e, watches: newWatches(e), passes: newPasses(), pace: newPace(), written: newWritten(), clock: clock.RealClock{},
		teller: &teller{client: c, recorder: record.NewFakeRecorder(100), clock: clock.RealClock{}},
	}
	r.watches.ctx = t.Context()
	return &room{r, e, t}
}

func (r *room) reconcile(name string) error {
	result, err := r.Reconcile(r.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}})
	if err != nil {
		require.Zero(r.t, result, "what fails comes again after a growing pause; to ask for another besides is a warning in the log")
	}
	return err
}

func (r *room) read(name string) *v1beta1.NodeMaintenance {
	nm := &v1beta1.NodeMaintenance{}
	if client.IgnoreNotFound(r.client.Get(r.t.Context(), client.ObjectKey{Name: name}, nm)) != nil || nm.UID == "" {
		return nil
	}
	return nm
}

// events returns the names of those that are there exactly once.
func (r *room) events() []string {
	var all corev1.EventList
	require.NoError(r.t, r.client.List(r.t.Context(), &all))
	var out []string
	for _, e := range all.Items {
		out = append(out, e.Name)
	}
	return out
}

func (r *room) remove(name string) {
	r.t.Helper()
	require.NoError(r.t, r.client.Delete(r.t.Context(), r.read(name)))
}

func anObject(name, node string) *v1beta1.NodeMaintenance {
	nm := objectFor(name, node)
	nm.UID = types.UID(name)
	return nm
}

func aNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "node-uid"}}
}

// Each pass looks through all objects: that must not cost a copy of each.
func TestPassCopiesNoOtherObject(t *testing.T) {
	var copied []client.ListOption
	r := newRoom(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, all client.ObjectList, o ...client.ListOption) error {
		var lo client.ListOptions
		if lo.ApplyOptions(o); !ptr.Deref(lo.UnsafeDisableDeepCopy, false) {
			copied = append(copied, &lo)
		}
		return c.List(ctx, all, o...)
	}}, aNode("n1"), anObject("a", "n1"), anObject("b", "n2"))
	require.NoError(t, r.reconcile("a"))
	require.Equal(t, []string{"n1"}, r.engine.started)
	require.Empty(t, copied)
}

// A node is handed over to an object that will give it back, also if that one goes before its first pass.
func TestHandedOverToOneThatGoesToo(t *testing.T) {
	r := newRoom(t, interceptor.Funcs{}, aNode("n1"), anObject("a", "n1"), anObject("b", "n1"))
	require.NoError(t, r.reconcile("a"))
	require.NoError(t, r.reconcile("b"))
	require.Equal(t, []string{"n1"}, r.engine.started, "the other waits")
	require.Empty(t, r.read("b").Finalizers)

	r.remove("a")
	require.NoError(t, r.reconcile("a"))
	require.Nil(t, r.read("a"))
	require.Empty(t, r.engine.stopped)
	r.remove("b")
	require.NoError(t, r.reconcile("b"))

	require.Nil(t, r.read("b"))
	require.Equal(t, []string{"n1"}, r.engine.stopped, "somebody must give the node back")
}

func TestHandedOverToOneThatIsGoneSince(t *testing.T) {
	r := newRoom(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if err == nil && key.Name == "b" && len(o.GetFinalizers()) == 0 {
				require.NoError(t, c.Delete(ctx, objectFor("b", "n1")))
			}
			return err
		},
	}, aNode("n1"), anObject("a", "n1"), anObject("b", "n1"))
	require.NoError(t, r.reconcile("a"))
	r.remove("a")
	require.Error(t, r.reconcile("a"))
	require.NotNil(t, r.read("a"), "nobody has taken the node over")
	require.NoError(t, r.reconcile("a"))
	require.Nil(t, r.read("a"))
	require.Equal(t, []string{"n1"}, r.engine.stopped)
}

// A node that appears between two looks, ours and the engine's, is not held for an object that could go without a word.
func TestNodeAppearsBetweenTwoLooks(t *testing.T) {
	looks := 0
	r := newRoom(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*corev1.Node); ok {
				if looks++; looks == 1 {
					return apierrors.NewNotFound(corev1.Resource("nodes"), key.Name)
				}
			}
			return c.Get(ctx, key, o, opts...)
		},
	}, aNode("n1"), anObject("a", "n1"))
	require.NoError(t, r.reconcile("a"))
	require.Equal(t, []string{"n1"}, r.engine.started)
	require.NotEmpty(t, r.read("a").Finalizers)
	require.NoError(t, r.reconcile("a"))
	require.Equal(t, []string{"n1"}, r.engine.watched)
	require.Equal(t, v1beta1.MaintenanceRunning, r.read("a").Status.Phase)
}

func TestNoNodeCanHaveThatName(t *testing.T) {
	for _, name := range []string{"a/b", "..", "%zz"} {
		r := newRoom(t, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if key.Name == name { // as a client answers that knows better than to ask
					return errors.New("invalid resource name")
				}
				return c.Get(ctx, key, o, opts...)
			},
		}, anObject("a", name))
		require.NoError(t, r.reconcile("a"))
		require.Equal(t, []string{name}, r.engine.started, "the engine says what is wrong with it")
		require.Empty(t, r.engine.watched)
	}
}

// An object may have gone, its finalizer taken off by hand, and come back for another node before anybody looked.
func TestSameNameForAnotherNode(t *testing.T) {
	r := newRoom(t, interceptor.Funcs{}, aNode("n1"), aNode("n2"), anObject("a", "n1"))
	require.NoError(t, r.reconcile("a"))
	now := r.read("a")
	now.Finalizers = nil
	require.NoError(t, r.client.Update(t.Context(), now))
	r.remove("a")
	require.NoError(t, r.client.Create(t.Context(), anObject("a", "n2")))
	require.NoError(t, r.reconcile("a"))
	require.NoError(t, r.reconcile("a"))
	require.Equal(t, []string{"n1", "n2"}, r.engine.watched)
	require.Equal(t, []string{"n1"}, r.engine.stopped)
}

// An object may go without a deletion that anybody could act on: its finalizer is taken off by force, or the API
// server deletes it in the moment in which it gets it. Its node is given back all the same.
func TestGoneWithoutAWord(t *testing.T) {
	for _, tc := range []struct {
		reason     string
		finalizers []string // what is left on the object as it is deleted
		rival      bool
		stopped    []string
	}{
		{reason: "gone", stopped: []string{"n1"}},
		{reason: "going, for another finalizer", finalizers: []string{"example.com/other"}, stopped: []string{"n1"}},
		{reason: "another acts now", rival: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			objects := []client.Object{aNode("n1"), anObject("a", "n1")}
			if tc.rival {
				objects = append(objects, anObject("b", "n1"))
			}
			r := newRoom(t, interceptor.Funcs{}, objects...)
			require.NoError(t, r.reconcile("a"))
			now := r.read("a")
			now.Finalizers = tc.finalizers
			require.NoError(t, r.client.Update(t.Context(), now))
			r.remove("a")

			if len(tc.stopped) > 0 {
				r.engine.broken = errors.New("away")
				require.Error(t, r.reconcile("a"), "it is tried again")
				require.False(t, r.engine.wakes(), "but not for each change of the node")
			}
			require.NoError(t, r.reconcile("a"))
			require.NoError(t, r.reconcile("a"))
			require.Equal(t, tc.stopped, r.engine.stopped)
			require.Nil(t, r.watches.of("a"))
			require.Equal(t, []string{"removedmaintenance-a"}, r.events())
			if tc.rival {
				require.NotEmpty(t, r.read("b").Finalizers)
			}
		})
	}
}

// Whoever takes the finalizer off by force may do so because the node could not be given back. Then it is given back
// when it can be, also by an operator that began after the object was deleted.
func TestForcedAfterAFailedGiveBack(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		watched bool
	}{
		{reason: "its node was watched", watched: true},
		{reason: "it was being deleted when the operator began"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			nm := anObject("a", "n1")
			nm.Finalizers = []string{v1beta1.Finalizer}
			r := newRoom(t, interceptor.Funcs{}, aNode("n1"), nm)
			if tc.watched {
				require.NoError(t, r.reconcile("a"))
			}
			r.remove("a")
			r.engine.broken = errors.New("refused")
			require.Error(t, r.reconcile("a"))
			require.False(t, r.engine.wakes(), "what changes on the node must not cut the pause short")
			now := r.read("a")
			now.Finalizers = nil
			require.NoError(t, r.client.Update(t.Context(), now))

			r.engine.broken = errors.New("still refused")
			require.Error(t, r.reconcile("a"), "it is tried again")
			require.NoError(t, r.reconcile("a"))
			require.NoError(t, r.reconcile("a"))
			require.Equal(t, []string{"n1"}, r.engine.stopped)
			require.Nil(t, r.watches.of("a"))
			require.Equal(t, []string{"removedmaintenance-a"}, r.events())
		})
	}
}

// The same name may stand for another object for the same node before anybody looked.
func TestGoneAndBack(t *testing.T) {
	r := newRoom(t, interceptor.Funcs{}, aNode("n1"), anObject("a", "n1"))
	require.NoError(t, r.reconcile("a"))
	now := r.read("a")
	now.Finalizers = nil
	require.NoError(t, r.client.Update(t.Context(), now))
	r.remove("a")
	again := anObject("a", "n1")
	again.UID = "again"
	require.NoError(t, r.client.Create(t.Context(), again))
	for range 3 {
		require.NoError(t, r.reconcile("a"))
	}
	require.Equal(t, []string{"removedmaintenance-a"}, r.events(), "the end of the first is told")
	require.Empty(t, r.engine.stopped, "the node is the second's now")
	require.NotEmpty(t, r.read("a").Finalizers)
	require.Equal(t, types.UID("again"), r.watches.of("a").UID)
}

// A cache that has lost an object which the API server still has does not end its maintenance.
func TestLostByTheCacheOnly(t *testing.T) {
	lost := false
	r := newRoom(t, interceptor.Funcs{}, aNode("n1"), anObject("a", "n1"))
	r.client = interceptor.NewClient(r.client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // newRoom's can
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if lost {
				return apierrors.NewNotFound(corev1.Resource("nodemaintenances"), key.Name)
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	require.NoError(t, r.reconcile("a"))
	lost = true
	require.NoError(t, r.reconcile("a"))
	require.Empty(t, r.engine.stopped)
	require.Empty(t, r.events())
	lost = false
	require.NoError(t, r.reconcile("a"))
	require.Equal(t, []string{"n1", "n1"}, r.engine.started)
}

func TestNothingIsBegunBeforeItCanBeWatched(t *testing.T) {
	r := newRoom(t, interceptor.Funcs{}, aNode("n1"), anObject("a", "n1"))
	r.watches.ctx = nil
	require.Error(t, r.reconcile("a"))
	require.Empty(t, r.engine.started, "nothing would wake it again")
}
