// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/nodemaint/nodemaint/lease"
	"github.com/nodemaint/nodemaint/taint"
)

// seen is a node as a pass read it.
type seen struct {
	*corev1.Node
	copied bool // from a watch's copy
}

// holding is how the record and the marks of a node stand after a pass.
type holding struct {
	complete   bool          // every mark is in place
	unreadable bool          // the record is, and was left
	retryAfter time.Duration // when missing marks may be put back; 0 if none are
	ignored    []Mark        // marks that the API server did not keep when they were last written
}

// complaints say what is wrong with the record and the marks; none if nothing is.
func (h holding) complaints() []string {
	var out []string
	if h.unreadable {
		out = append(out, fmt.Sprintf("%v: annotation %s; its maintenance goes on, but giving the node back will be incomplete", ErrRecord, RecordAnnotation))
	}
	if len(h.ignored) > 0 {
		out = append(out, fmt.Sprintf("the API server took a write of the node and did not keep all of it (%v): a webhook may take it off", h.ignored))
	}
	return out
}

// hold sees to it that the record is written and every mark in place. It sets the record and the counts
// of next.
func (e *Engine) hold(ctx context.Context, n seen, grant lease.Grant, prior State, next *State) (holding, error) {
	if n.copied && !e.trusts(n.Node, prior) {
		live, err := e.get(ctx, n.Name) // a copy may lag behind our own writes
		if err != nil {
			return holding{}, err
		}
		if live == nil || live.UID != n.UID {
			return holding{}, fmt.Errorf("node %q was deleted meanwhile", n.Name)
		}
		n.Node = live
	}
	if err := e.begin(ctx, n.Name, prior); err != nil {
		return holding{}, err
	}
	s, err := e.record(ctx, &n, grant, prior, next)
	if err != nil {
		return holding{}, err
	}
	m := e.memory(n.Name)
	lacks := missing(n.Node)
	if len(lacks) == 0 {
		m.ignored = nil
		return holding{complete: true, unreadable: s.unreadable}, nil
	}
	if prior.Progress.Recorded {
		if pause := m.rests.Sub(e.now()); pause > 0 {
			return holding{unreadable: s.unreadable, retryAfter: pause, ignored: m.ignored}, nil
		}
		m.lost(lacks, e.now()) // before the writes: one that fails may have taken effect
	}
	marked, err := e.mark(ctx, n.Node)
	if err != nil {
		return holding{}, err
	}
	m.ignored = missing(marked)
	h := holding{complete: len(m.ignored) == 0, unreadable: s.unreadable, ignored: m.ignored}
	if prior.Progress.Recorded || !h.complete {
		m.rests = e.now().Add(HoldDelay)
	}
	if !h.complete {
		h.retryAfter = HoldDelay
	}
	return h, nil
}

// trusts says whether a copy of the node will do: nothing is owed, or what is owed begins with a write that
// fails if the copy is old.
func (e *Engine) trusts(n *corev1.Node, prior State) bool {
	if prior.Progress.Recorded {
		return e.inPlace(n)
	}
	_, recorded := n.Annotations[RecordAnnotation]
	return !recorded
}

// inPlace says whether n carries our record and all marks, so that nothing is owed.
func (e *Engine) inPlace(n *corev1.Node) bool {
	r, err := parseRecord(n)
	return err == nil && r != nil && r.Holder == e.opts.Lease.Holder() && len(missing(n)) == 0
}

// begin tells that the maintenance begins, before its first write to the node.
func (e *Engine) begin(ctx context.Context, node string, prior State) error {
	if prior.Progress.Recorded {
		return nil
	}
	if err := e.opts.OnTransition(ctx, Transition{Node: node, Step: Begin}); err != nil {
		return fmt.Errorf("telling that the maintenance begins: %w", err)
	}
	return nil
}

// record writes the record if that is owed, in one write with the label, and replaces n by the node as
// written.
func (e *Engine) record(ctx context.Context, n *seen, grant lease.Grant, prior State, next *State) (settled, error) {
	var s settled
	out, err := e.edit(ctx, n.Node, "recording what stands on", func(n *corev1.Node) (change, error) {
		s = settle(n, prior, grant.Resumed, e.opts.Lease.Holder())
		if s.unreadable || s.count {
			if err := e.count(ctx, n.Name, next); err != nil {
				return change{}, err
			}
			s.record.Total, s.record.Eviction = next.Progress.Total, next.Progress.Eviction
		}
		if !s.write || n.Annotations[RecordAnnotation] == s.record.encode() {
			return change{}, nil
		}
		var c change
		if n.Labels[ExcludeLabel] != labelValue && !prior.Progress.Recorded {
			s.record = s.record.reclaim(n, []Mark{MarkLabel})
			c.labels = map[string]*string{ExcludeLabel: ptr.To(labelValue)}
		}
		c.annotations = map[string]*string{RecordAnnotation: ptr.To(s.record.encode())}
		return c, nil
	})
	if err != nil {
		return s, err
	}
	n.Node = out
	next.Progress.Recorded = true
	if next.Record = nil; !s.unreadable {
		next.Record = &s.record
		next.Progress.Total, next.Progress.Eviction = s.record.Total, s.record.Eviction
	}
	return s, nil
}

// count counts the pods of the node, once for a maintenance. A maintenance taken over from an operator
// without records keeps the number of pods that had to leave.
func (e *Engine) count(ctx context.Context, node string, next *State) error {
	if next.Progress.Recorded {
		return nil
	}
	plan, err := e.opts.Drainer.Plan(ctx, node)
	if err != nil {
		return fmt.Errorf("counting the pods: %w", err)
	}
	next.Progress.Total = plan.Total()
	if next.Progress.Eviction == 0 {
		next.Progress.Eviction = len(plan.Pending())
	}
	return nil
}

// mark puts the marks on n that it lacks: label, taints, cordon. First the record says of each of them
// what stands in its place now. It returns the node as written.
func (e *Engine) mark(ctx context.Context, n *corev1.Node) (*corev1.Node, error) {
	n, err := e.edit(ctx, n, "labelling", func(n *corev1.Node) (change, error) {
		var c change
		if r, err := parseRecord(n); err == nil && r != nil {
			if now := r.reclaim(n, missing(n)); now.encode() != r.encode() {
				c.annotations = map[string]*string{RecordAnnotation: ptr.To(now.encode())}
			}
		}
		if n.Labels[ExcludeLabel] != labelValue {
			c.labels = map[string]*string{ExcludeLabel: ptr.To(labelValue)}
		}
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	// Taints and cordon in one write: kube-controller-manager takes the unschedulable taint off a node that is
	// not cordoned, and would put it on again a moment later.
	return e.edit(ctx, n, "tainting and cordoning", func(n *corev1.Node) (change, error) {
		var c change
		if !taint.Has(n.Spec.Taints, drainTaint) { // the other one alone is no reason to write
			taints, _ := taint.With(n.Spec.Taints, drainTaint, unschedulableTaint)
			c.taints = &taints
		}
		if !n.Spec.Unschedulable {
			c.unschedulable = ptr.To(true)
		}
		return c, nil
	})
}
