// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/nodemaint/nodemaint/taint"
)

// Restored says what a Stop gave back.
type Restored struct {
	// Changed says that the node was changed; false if there was nothing of ours on it.
	Changed bool
	// Uncordoned says that the node became schedulable again.
	Uncordoned bool
	// Incomplete says that the record was unreadable, so that only what is certainly ours was taken off.
	Incomplete bool
	// Commands finish an incomplete one by hand.
	Commands []string
}

// Stop ends the maintenance of node: it ends a Start under way and the evictions in flight, undoes what
// the record on the node says is ours, and releases the lease, if it is ours. Without a record, with one that
// names another holder, or with one that cannot be read while another holds the lease, nothing on the node is
// changed. It is idempotent. A node that is gone is no
// error. Errors: those of reading and writing node and lease, or of a hook; call it again.
func (e *Engine) Stop(ctx context.Context, node string) (Restored, error) {
	done, err := e.turns.stop(ctx, node)
	if err != nil {
		return Restored{}, fmt.Errorf("stopping maintenance of node %q: %w", node, err)
	}
	defer done()
	if checkName(node) != nil {
		return Restored{}, nil // no Start ever touched it
	}
	defer e.forget(node)
	e.opts.Drainer.Cancel(node)
	n, err := e.get(ctx, node)
	if err != nil {
		return Restored{}, fmt.Errorf("stopping maintenance: %w", err)
	}
	restored, err := e.restore(ctx, n)
	if err != nil {
		return restored, fmt.Errorf("stopping maintenance: %w", err)
	}
	if err := e.opts.Lease.Release(ctx, node); err != nil {
		return restored, fmt.Errorf("stopping maintenance: %w", err)
	}
	return restored, nil
}

// theirs says whether what is on n may be somebody else's altogether: its record cannot be read, and another
// holds its lease.
func (e *Engine) theirs(ctx context.Context, n *corev1.Node) (bool, error) {
	if _, err := parseRecord(n); err == nil {
		return false, nil
	}
	return e.opts.Lease.HeldByAnother(ctx, n.Name)
}

// restore gives the node back as the record says, in two writes: the label, then all the rest and the
// record itself, so that a crash between them leaves a record to go on with. What may be another's stays.
func (e *Engine) restore(ctx context.Context, n *corev1.Node) (Restored, error) {
	if n == nil {
		return Restored{}, nil
	}
	done, err := e.undo(ctx, n)
	if apierrors.IsNotFound(err) {
		return Restored{}, nil // it went meanwhile
	}
	return done, err
}

func (e *Engine) undo(ctx context.Context, n *corev1.Node) (Restored, error) {
	var done Restored
	n, err := e.edit(ctx, n, "taking the label off", func(n *corev1.Node) (change, error) {
		r, err := parseRecord(n)
		if err != nil || r == nil || r.Holder != e.opts.Lease.Holder() {
			return change{}, nil //nolint:nilerr // an unreadable record is dealt with below
		}
		return unlabel(n, r), nil
	})
	if err != nil {
		return done, err
	}
	_, err = e.edit(ctx, n, "giving back", func(n *corev1.Node) (change, error) {
		done = Restored{}
		if theirs, err := e.theirs(ctx, n); err != nil || theirs {
			return change{}, err
		}
		var c change
		if c, done = giveBack(n, e.opts.Lease.Holder()); c.empty() {
			return c, nil
		}
		return c, e.tellRestored(ctx, n.Name, done)
	})
	return done, err
}

// tellRestored tells the steps that giving back takes, before the write.
func (e *Engine) tellRestored(ctx context.Context, node string, done Restored) error {
	t := Transition{Node: node, Step: Uncordon}
	switch {
	case done.Incomplete:
		t.Step, t.Commands = RestoreIncomplete, done.Commands
	case !done.Uncordoned:
		return nil
	}
	if err := e.opts.OnTransition(ctx, t); err != nil {
		return fmt.Errorf("telling that node %q is given back: %w", node, err)
	}
	return nil
}

// unlabel puts the label back as it was, if it still is as we set it.
func unlabel(n *corev1.Node, r *Record) change {
	if n.Labels[ExcludeLabel] != labelValue || (r.Label != nil && *r.Label == labelValue) {
		return change{}
	}
	return change{labels: map[string]*string{ExcludeLabel: r.Label}}
}

// giveBack returns the write that undoes what the record on n says is ours, the record included, and what
// that comes to. An empty change: there is nothing of holder's on the node.
func giveBack(n *corev1.Node, holder string) (change, Restored) {
	r, err := parseRecord(n)
	if err != nil {
		return giveBackCertain(n)
	}
	if r == nil || r.Holder != holder {
		return change{}, Restored{}
	}
	c := change{annotations: map[string]*string{RecordAnnotation: nil}}
	done := Restored{Changed: true}
	if n.Spec.Unschedulable && !r.Unschedulable {
		c.unschedulable = ptr.To(false)
		done.Uncordoned = true
	}
	var ours []corev1.Taint
	if !r.foreignTaint(drainTaint) {
		ours = append(ours, drainTaint)
	}
	if !r.foreignTaint(unschedulableTaint) && !r.Unschedulable {
		ours = append(ours, unschedulableTaint)
	}
	if taints, changed := taint.Without(n.Spec.Taints, ours...); changed {
		c.taints = &taints
	}
	return c, done
}

// giveBackCertain takes off what nobody but us can have put on a node whose record is unreadable: the
// record, and the drain taint as we set it. The rest may be somebody else's and is named in commands.
func giveBackCertain(n *corev1.Node) (change, Restored) {
	c := change{annotations: map[string]*string{RecordAnnotation: nil}}
	if taints, changed := taint.Without(n.Spec.Taints, drainTaint); changed {
		c.taints = &taints
	}
	done := Restored{Changed: true, Incomplete: true}
	if n.Spec.Unschedulable {
		done.Commands = append(done.Commands, "kubectl uncordon "+n.Name)
	}
	if _, ok := n.Labels[ExcludeLabel]; ok {
		done.Commands = append(done.Commands, fmt.Sprintf("kubectl label node %s %s-", n.Name, ExcludeLabel))
	}
	return c, done
}
