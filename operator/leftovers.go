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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

// leftovers gives nodes back when the operator begins to lead: those whose object went without a word while no
// operator ran. Their leases are ours still, and no object is for them. It is a runnable of the manager, and done when
// each node that was held at the beginning is given back or watched for an object. What is held later is not its business.
type leftovers struct {
	*Reconciler
	held func(context.Context) ([]maintenance.Held, error)
}

// Start looks, and gives back, until it is done or ctx ends.
func (l *leftovers) Start(ctx context.Context) error {
	ctx = logf.IntoContext(ctx, logf.FromContext(ctx).WithName("leftovers"))
	pauses := wait.Backoff{Duration: retryMin, Factor: 2, Jitter: 0.1, Steps: math.MaxInt32, Cap: retryMax}
	var open []maintenance.Held
	listed := false
	return ended(ctx, pauses.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		var err error
		if !listed {
			open, err = l.list(ctx)
			listed = err == nil
		}
		if listed && len(open) > 0 {
			open, err = l.clear(ctx, open)
		}
		if err != nil && ctx.Err() == nil {
			logf.FromContext(ctx).Info("nodes that no NodeMaintenance is for may be in maintenance still; looking again", "reason", err.Error())
		}
		return listed && len(open) == 0, nil
	}))
}

// ended returns err, unless it is the end of ctx, which is none.
func ended(ctx context.Context, err error) error {
	if errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

func (l *leftovers) list(ctx context.Context) ([]maintenance.Held, error) {
	ctx, done := context.WithTimeout(ctx, passLimit)
	defer done()
	return l.held(ctx)
}

// clear gives back those of the nodes that are left over, one after the other, and returns which it has to look at again.
// The objects are asked for after the leases: an object stands before its lease does.
func (l *leftovers) clear(ctx context.Context, held []maintenance.Held) ([]maintenance.Held, error) {
	listing, done := context.WithTimeout(ctx, passLimit)
	defer done()
	all, err := list(listing, l.live)
	if err != nil {
		return held, err
	}
	var open []maintenance.Held
	var failed []error
	for _, h := range held {
		known, err := l.clearOne(ctx, h, wantedFor(h.Node, all))
		if err != nil {
			failed = append(failed, fmt.Errorf("node %q: %w", h.Node, err))
		}
		if !known {
			open = append(open, h)
		}
	}
	return open, errors.Join(failed...)
}

// clearOne gives a node back that no object is for, and says whether it need not be looked at again. An object that is for
// it must have had its first pass: if it goes before, nobody else will know.
func (l *leftovers) clearOne(ctx context.Context, h maintenance.Held, wanted []v1beta1.NodeMaintenance) (bool, error) {
	for i := range wanted {
		if was := l.watches.of(wanted[i].Name); was != nil && was.UID == wanted[i].UID {
			return true, nil // whatever becomes of it, its node is known
		}
	}
	if len(wanted) > 0 {
		return false, nil
	}
	ctx, done := context.WithTimeout(withObject(ctx, unseen(h)), passLimit)
	defer done()
	log := logf.FromContext(ctx).WithValues("node", h.Node)
	node := &corev1.Node{}
	if err := l.live.Get(ctx, client.ObjectKey{Name: h.Node}, node); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting it: %w", err)
	}
	if maintenance.Unrecorded(node) { // without the lease nobody could tell whose its marks are
		log.Info("left as it is: no NodeMaintenance is for it, and whoever put it under maintenance kept no record. The next NodeMaintenance for it gives it back")
		return true, nil
	}
	log.Info("giving a node back that no NodeMaintenance is for")
	err := l.leave(ctx, h.Node)
	return err == nil, err
}

// wantedFor returns the objects that see to a node: those that may act for it, and those that have yet to give it back.
func wantedFor(node string, all []v1beta1.NodeMaintenance) []v1beta1.NodeMaintenance {
	var out []v1beta1.NodeMaintenance
	for _, nm := range all {
		gives := nm.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(&nm, v1beta1.Finalizer)
		if nm.Spec.NodeName == node && (gives || acts([]v1beta1.NodeMaintenance{nm}, node) != "") {
			out = append(out, nm)
		}
	}
	return out
}

// unseen stands for the object that the node was held for, whose name nobody knows. Its UID, the lease's, names the events.
func unseen(h maintenance.Held) *v1beta1.NodeMaintenance {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.Node, UID: h.NodeUID}}
	return &v1beta1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{UID: h.UID, OwnerReferences: []metav1.OwnerReference{ownerReference(node)}},
		Spec:       v1beta1.NodeMaintenanceSpec{NodeName: h.Node},
	}
}
