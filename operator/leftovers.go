// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

// leftovers gives nodes back, once, when the operator begins to lead: those whose object went without a word while
// no operator ran. Their leases are ours still, and no object is for them. It is a runnable of the manager.
type leftovers struct {
	*Reconciler
	held func(context.Context) ([]maintenance.Held, error)
}

// Start looks, and gives back, until it has succeeded or ctx ends.
func (l *leftovers) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("leftovers")
	ctx = logf.IntoContext(ctx, log)
	pauses := wait.Backoff{Duration: retryMin, Factor: 2, Jitter: 0.1, Steps: math.MaxInt32, Cap: retryMax}
	return ended(ctx, pauses.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := l.clear(ctx)
		if err != nil && ctx.Err() == nil {
			log.Error(err, "nodes that no NodeMaintenance is for may be in maintenance still; trying again")
		}
		return err == nil, nil
	}))
}

// ended returns err, unless it is the end of ctx, which is none.
func ended(ctx context.Context, err error) error {
	if errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// clear gives back each node that is left over. A node that cannot be given back holds up no other.
func (l *leftovers) clear(ctx context.Context) error {
	left, err := l.look(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, was := range left {
		if err := l.clearOne(ctx, was); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (l *leftovers) clearOne(ctx context.Context, was *v1beta1.NodeMaintenance) error {
	ctx, done := context.WithTimeout(withObject(ctx, was), passLimit)
	defer done()
	logf.FromContext(ctx).Info("giving a node back that no NodeMaintenance is for", "node", was.Spec.NodeName)
	return l.leave(ctx, was.Spec.NodeName)
}

// look returns, for each node that is left over, what is known of the object that it was for. The objects are asked for
// after the leases: an object stands before its lease does.
func (l *leftovers) look(ctx context.Context) ([]*v1beta1.NodeMaintenance, error) {
	ctx, done := context.WithTimeout(ctx, passLimit)
	defer done()
	held, err := l.held(ctx)
	if err != nil || len(held) == 0 {
		return nil, err
	}
	all, err := list(ctx, l.live)
	if err != nil {
		return nil, fmt.Errorf("looking for nodes that no NodeMaintenance is for: %w", err)
	}
	return leftOver(held, all), nil
}

// leftOver decides which nodes are left over: those held that no object is for. One that goes, our finalizer
// taken off, is for its node no longer.
func leftOver(held []maintenance.Held, all []v1beta1.NodeMaintenance) []*v1beta1.NodeMaintenance {
	wanted := map[string]bool{}
	for i := range all {
		if all[i].DeletionTimestamp == nil || controllerutil.ContainsFinalizer(&all[i], v1beta1.Finalizer) {
			wanted[all[i].Spec.NodeName] = true
		}
	}
	var out []*v1beta1.NodeMaintenance
	for _, h := range held {
		if !wanted[h.Node] {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.Node, UID: h.NodeUID}}
			out = append(out, &v1beta1.NodeMaintenance{ // its UID names the events
				ObjectMeta: metav1.ObjectMeta{UID: h.UID, OwnerReferences: []metav1.OwnerReference{ownerReference(node)}},
				Spec:       v1beta1.NodeMaintenanceSpec{NodeName: h.Node},
			})
		}
	}
	return out
}
