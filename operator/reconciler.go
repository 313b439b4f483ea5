// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

// Reconciler makes one pass of one NodeMaintenance.
type Reconciler struct {
	client  client.Client // reads NodeMaintenances from the cache, writes
	index   *index        // of that cache
	live    client.Reader // reads from the API server, for verdicts
	engine  maintenance.Interface
	teller  *teller
	watches *watches
	passes  *passes
	pace    *pace
	written *written
	itself  v1beta1.PodReference // the pod that it runs in; zero for none
	clock   clock.PassiveClock
}

// lookAgain is the pause before the next look at an object that is gone, but not from the cache: which brings the next pass
// sooner, if it was no odd answer.
const lookAgain = 5 * time.Second

// Reconcile brings the node of one NodeMaintenance further, or gives it back when the object goes.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pass, done := r.passes.begin(ctx, req.Name)
	defer done()
	nm := &v1beta1.NodeMaintenance{}
	if err := r.client.Get(ctx, req.NamespacedName, nm); err != nil {
		if apierrors.IsNotFound(err) {
			err = r.giveUp(ctx, req.Name)
		}
		return ctrl.Result{}, err
	}
	nm, err := r.current(ctx, r.written.freshest(nm))
	if nm == nil || err != nil {
		return after(lookAgain, err)
	}
	if was := r.watches.of(nm.Name); was != nil && (was.UID != nm.UID || was.Spec.NodeName != nm.Spec.NodeName) {
		return after(retryMin, r.giveUp(ctx, nm.Name)) // what we have of nm may be old after it
	}
	if nm.DeletionTimestamp != nil {
		return ctrl.Result{}, r.remove(withObject(ctx, nm), nm)
	}
	result, err := r.maintain(withObject(pass, nm), nm)
	if err != nil && goes(pass) { // which is no fault, and the next is asked for
		return ctrl.Result{}, nil
	}
	if err != nil {
		r.watches.rest(nm.Name)
	} else {
		r.watches.resume(nm.Name)
	}
	return result, err
}

// maintain brings the node of nm further, if nm acts for it.
func (r *Reconciler) maintain(ctx context.Context, nm *v1beta1.NodeMaintenance) (ctrl.Result, error) {
	if nm.Status.Phase == v1beta1.MaintenanceFailed {
		r.release(nm.Name)
		return r.store(ctx, nm, stateOf(nm))
	}
	other, err := r.actingInstead(ctx, nm)
	if err != nil {
		return ctrl.Result{}, err
	}
	if other != "" {
		r.release(nm.Name)
		return r.storeWaiting(ctx, nm, other)
	}
	return r.pass(ctx, nm)
}

// current returns nm as the API server has it, if its node is not watched yet, or the last pass failed: a cache may begin in
// the past, or be cut off as the pass was, and show an object that has given its node back long since. It returns nil if
// there is no such object any more. Without our finalizer it begins with a write that fails if the cache is old.
func (r *Reconciler) current(ctx context.Context, nm *v1beta1.NodeMaintenance) (*v1beta1.NodeMaintenance, error) {
	seen := r.watches.of(nm.Name) != nil && r.watches.resting(nm.Name) == nil
	if seen || !controllerutil.ContainsFinalizer(nm, v1beta1.Finalizer) {
		return nm, nil
	}
	live := &v1beta1.NodeMaintenance{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(nm), live)
	switch {
	case apierrors.IsNotFound(err) || (err == nil && live.UID != nm.UID):
		return nil, nil // the cache has yet to show it
	case err != nil:
		return nil, fmt.Errorf("getting NodeMaintenance %q: %w", nm.Name, err)
	}
	r.written.put(nm.ResourceVersion, live)
	return live, nil
}

// pass makes one pass of the engine and stores what it found.
func (r *Reconciler) pass(ctx context.Context, nm *v1beta1.NodeMaintenance) (ctrl.Result, error) {
	if len(content.IsDNS1123Subdomain(nm.Spec.NodeName)) == 0 { // before all else: by the time it is read it may stand
		if err := r.watches.ensure(nm); err != nil {
			return ctrl.Result{}, err
		}
	}
	prior := stateOf(nm)
	known, err := r.adopt(ctx, nm)
	if err != nil {
		return ctrl.Result{}, r.storeFailed(ctx, nm, prior.Failing(err), err)
	}
	r.watches.note(nm)
	prior.NodeUID = ownerUID(nm)
	next, err := r.engine.Start(ctx, nm.Spec.NodeName, prior)
	if err != nil {
		return ctrl.Result{}, r.storeFailed(ctx, nm, next, err)
	}
	if !known && !next.Done() { // the node may have come between the two looks, and be marked by now
		if known, err = r.adopt(ctx, nm); err != nil || known {
			return after(retryMin, err)
		}
	}
	r.teller.tell(ctx, nm, next)
	if next.Done() {
		r.release(nm.Name)
	}
	return r.store(ctx, nm, next)
}

// adopt puts finalizer and owner, the node, on the object in one write, and says whether there is such a
// node: without one there is nothing to give back.
func (r *Reconciler) adopt(ctx context.Context, nm *v1beta1.NodeMaintenance) (bool, error) {
	owned := ownerUID(nm) != ""
	if owned && controllerutil.ContainsFinalizer(nm, v1beta1.Finalizer) {
		return true, nil
	}
	if len(content.IsPathSegmentName(nm.Spec.NodeName)) > 0 {
		return false, nil // no such name can even be asked for
	}
	node := &corev1.Node{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: nm.Spec.NodeName}, node); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("getting node %q: %w", nm.Spec.NodeName, err)
	}
	before := nm.DeepCopy()
	controllerutil.AddFinalizer(nm, v1beta1.Finalizer)
	if !owned {
		nm.OwnerReferences = append(nm.OwnerReferences, ownerReference(node))
	}
	if err := r.client.Patch(ctx, nm, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("putting finalizer and owner on NodeMaintenance %q: %w", nm.Name, err)
	}
	r.written.put(before.ResourceVersion, nm)
	return true, nil
}

// release ends the watch that the object of that name has on its node, and forgets the object.
func (r *Reconciler) release(name string) {
	r.watches.release(name)
	r.pace.forget(name)
	r.written.forget(name)
}

// store writes the status of state if it differs from the one there, and says when to come again.
func (r *Reconciler) store(ctx context.Context, nm *v1beta1.NodeMaintenance, state maintenance.State) (ctrl.Result, error) {
	return r.write(ctx, nm, statusOf(nm, state), state.RetryAfter)
}

// lastWords is how long a pass that took too long may take to store that.
const lastWords = 5 * time.Second

// storeFailed stores why a pass, or giving back, failed, if the pace allows it now, and returns failed, so that the next
// try comes after a growing pause. What was broken off says nothing.
func (r *Reconciler) storeFailed(ctx context.Context, nm *v1beta1.NodeMaintenance, state maintenance.State, failed error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) { // its cause may be any
		late, done := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
		defer done()
		ctx = late
	}
	if ctx.Err() != nil || errors.Is(failed, maintenance.ErrStopped) {
		return failed
	}
	if _, err := r.store(ctx, nm, state); err != nil {
		return fmt.Errorf("%w; %w", failed, err)
	}
	return failed
}

func (r *Reconciler) storeWaiting(ctx context.Context, nm *v1beta1.NodeMaintenance, acting string) (ctrl.Result, error) {
	return r.write(ctx, nm, waitingStatus(nm, acting), 0)
}

func (r *Reconciler) write(ctx context.Context, nm *v1beta1.NodeMaintenance, want v1beta1.NodeMaintenanceStatus, again time.Duration) (ctrl.Result, error) {
	if equalStatus(nm.Status, want) {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	now := r.clock.Now()
	if pause := r.pace.pause(nm.Name, now); pause > 0 && !urgent(nm.Status, want, r.itself) {
		return ctrl.Result{RequeueAfter: soonest(again, pause)}, nil
	}
	before := nm.DeepCopy()
	nm.Status = stamped(want, now)
	err := r.client.Status().Patch(ctx, nm, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) { // the copy was old
		return ctrl.Result{RequeueAfter: retryMin}, nil
	}
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("writing the status of NodeMaintenance %q: %w", nm.Name, err))
	}
	r.pace.wrote(nm.Name, nm.Status.Phase, now)
	r.written.put(before.ResourceVersion, nm)
	r.teller.tellStored(ctx, before, nm)
	return ctrl.Result{RequeueAfter: again}, nil
}

// after asks for another pass after that pause, or, if err is one, after one that grows.
func after(pause time.Duration, err error) (ctrl.Result, error) {
	if err != nil {
		pause = 0
	}
	return ctrl.Result{RequeueAfter: pause}, err
}

func soonest(a, b time.Duration) time.Duration {
	if a > 0 && a < b {
		return a
	}
	return b
}
