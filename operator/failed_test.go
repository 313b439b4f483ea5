// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

// What keeps a pass from being made is for people to see, not for the log alone.
func TestFailedPassIsTold(t *testing.T) {
	r := newRoom(t, interceptor.Funcs{}, aNode("n1"), anObject("a", "n1"))
	down := errors.New("nodes may not be patched")
	r.engine.during = func(context.Context) error { return down }
	require.ErrorIs(t, r.reconcile("a"), down, "which brings the next pass after a pause")
	require.Equal(t, v1beta1.MaintenanceRunning, r.read("a").Status.Phase)
	require.Contains(t, r.read("a").Status.LastError, "may not be patched")

	stored := r.read("a").ResourceVersion
	r.engine.during = func(context.Context) error { return maintenance.ErrStopped }
	require.ErrorIs(t, r.reconcile("a"), maintenance.ErrStopped)
	require.Equal(t, stored, r.read("a").ResourceVersion)
}

func TestFailedPassThatCannotBeStored(t *testing.T) {
	full := errors.New("the disk is full")
	r := newRoom(t, interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
		return full
	}}, aNode("n1"), anObject("a", "n1"))
	down := errors.New("down")
	r.engine.during = func(context.Context) error { return down }
	err := r.reconcile("a")
	require.ErrorIs(t, err, down)
	require.ErrorIs(t, err, full)
}

// A pass that takes too long is ended, and says so with what time it has left.
func TestPassThatTakesTooLongIsTold(t *testing.T) {
	r := newRoom(t, interceptor.Funcs{}, aNode("n1"), anObject("a", "n1"))
	r.engine.during = func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	late := errors.New("it took too long") // controller-runtime gives its own reason
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, late)
	defer cancel()
	_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Name: "a"}})
	require.ErrorIs(t, err, late)
	require.Contains(t, r.read("a").Status.LastError, "it took too long")
}

// That an object cannot be got hold of is told as well.
func TestObjectThatCannotBeAdopted(t *testing.T) {
	denied := errors.New("nodemaintenances may not be patched")
	r := newRoom(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return denied
	}}, aNode("n1"), anObject("a", "n1"))
	require.ErrorIs(t, r.reconcile("a"), denied)
	require.Contains(t, r.read("a").Status.LastError, "may not be patched")
	require.Empty(t, r.engine.started)
}

func TestAFailedPassAsksForNoOtherBesides(t *testing.T) {
	r := newRoom(t, interceptor.Funcs{}, aNode("n1"), anObject("a", "n1"))
	require.NoError(t, r.reconcile("a"))
	down := errors.New("down")
	r.engine.during = func(context.Context) error { return down }
	require.ErrorIs(t, r.reconcile("a"), down)
	r.live = newRoom(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return down
	}}).client
	require.ErrorIs(t, r.reconcile("a"), down)
}

// An operator that was cut off comes back to its cache sooner than that comes back to the API server. An object with our
// finalizer may be gone by then all the same: a deletion may have crossed the write that put it on.
func TestAnObjectThatWentWhileTheOperatorWasCutOff(t *testing.T) {
	r := newRoom(t, interceptor.Funcs{}, aNode("n1"), anObject("a", "n1"))
	require.NoError(t, r.reconcile("a"))
	r.engine.during = func(context.Context) error { return errors.New("connection refused") }
	require.Error(t, r.reconcile("a"))
	r.engine.during, r.engine.started = nil, nil
	r.live = newRoom(t, interceptor.Funcs{}, aNode("n1")).client
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "a"}})
	require.NoError(t, err)
	require.Empty(t, r.engine.started)
	require.NotZero(t, result.RequeueAfter, "if that was an odd answer, nothing else may bring another pass")

	now := r.read("a")
	now.Finalizers = nil
	require.NoError(t, r.client.Update(t.Context(), now))
	r.remove("a")
	require.NoError(t, r.reconcile("a"), "and once the cache shows it")
	require.Equal(t, []string{"n1"}, r.engine.stopped)
}
