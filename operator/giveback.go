// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// remove gives the node back, or hands it over to another object for it, and lets the object go.
func (r *Reconciler) remove(ctx context.Context, nm *v1beta1.NodeMaintenance) error {
	if !controllerutil.ContainsFinalizer(nm, v1beta1.Finalizer) {
		return r.giveUp(ctx, nm.Name)
	}
	if err := r.giveBack(ctx, nm); err != nil {
		return r.storeFailed(ctx, nm, stateOf(nm).Failing(err), err)
	}
	r.release(nm.Name)
	before := nm.DeepCopy()
	controllerutil.RemoveFinalizer(nm, v1beta1.Finalizer)
	if err := r.client.Patch(ctx, nm, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("taking the finalizer off NodeMaintenance %q: %w", nm.Name, err))
	}
	return nil
}

// giveUp ends what is done for the object of that name, which is for its node no longer: it went without a word,
// its finalizer taken off by force or put on in the moment in which it was deleted, or the name is another's now.
func (r *Reconciler) giveUp(ctx context.Context, name string) error {
	if was := r.watches.of(name); was != nil {
		there, err := r.there(ctx, was)
		if err == nil && !there {
			err = r.giveBack(withObject(ctx, was), was)
		}
		if err != nil {
			return err
		}
	}
	r.release(name)
	return nil
}

// there says whether the API server still has nm, for its node and with our finalizer: a cache may have lost it.
func (r *Reconciler) there(ctx context.Context, nm *v1beta1.NodeMaintenance) (bool, error) {
	live := &v1beta1.NodeMaintenance{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(nm), live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return live.UID == nm.UID && live.Spec.NodeName == nm.Spec.NodeName && controllerutil.ContainsFinalizer(live, v1beta1.Finalizer), nil
}

// giveBack gives the node of nm back, unless another object acts for it, and tells the end of nm. It remembers nm,
// until it is released, for a try that fails: nm may be gone by the next, its finalizer taken off by force.
func (r *Reconciler) giveBack(ctx context.Context, nm *v1beta1.NodeMaintenance) error {
	r.watches.end(nm)
	if err := r.leave(ctx, nm.Spec.NodeName); err != nil {
		return err
	}
	return r.teller.create(ctx, removed(nm))
}

// leave gives node back, unless an object acts for it.
func (r *Reconciler) leave(ctx context.Context, node string) error {
	handedOver, err := r.handOver(ctx, node)
	if err != nil || handedOver {
		return err
	}
	restored, err := r.engine.Stop(ctx, node)
	if err != nil {
		return err
	}
	logf.FromContext(ctx).Info("node given back", "node", node, "changed", restored.Changed,
		"uncordoned", restored.Uncordoned, "incomplete", restored.Incomplete)
	return nil
}

// handOver says whether another object acts for node now. It has the finalizer before that is said: it may go
// before its first pass, and somebody has to give the node back.
func (r *Reconciler) handOver(ctx context.Context, node string) (bool, error) {
	name, err := r.acting(ctx, node)
	if err != nil || name == "" {
		return false, err
	}
	heir := &v1beta1.NodeMaintenance{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: name}, heir); err != nil {
		return false, fmt.Errorf("handing node %q over to NodeMaintenance %q: %w", node, name, err)
	}
	if heir.Spec.NodeName != node { // made again under its name since
		return false, fmt.Errorf("handing node %q over to NodeMaintenance %q: it is for node %q now", node, name, heir.Spec.NodeName)
	}
	return r.adopt(ctx, heir)
}
