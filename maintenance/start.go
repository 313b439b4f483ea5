// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/nodemaint/nodemaint/lease"
)

// Start makes one pass of the maintenance of node: lease, record, marks, evictions, in this order, each
// only if it is owed. It returns what the next Start must know. Errors: a pass could not be made (the API
// server is away, the pods cannot be read, a hook failed, ctx ended, or, ErrStopped, a Stop came first). Keep the state
// then too: it is prior with Error saying why, unless lease failures are being counted; Running in place of Succeeded
// after LeaseLook of failures, and LeaseRefused in place of LeaseHeld once the lease has run out. It is prior alone if
// ctx was cancelled or a Stop came. Try again after a growing pause, which a wake of Watch must not cut short.
func (e *Engine) Start(ctx context.Context, node string, prior State) (State, error) {
	v := e.turns.visit(node)
	defer v.leave()
	return e.start(ctx, v, prior)
}

func (e *Engine) start(ctx context.Context, v *visit, prior State) (State, error) {
	node := v.node
	if prior.Done() {
		return prior, nil
	}
	if err := checkName(node); err != nil {
		return e.fail(ctx, node, prior, InvalidNodeName, err.Error())
	}
	turn, done, err := v.start(ctx)
	if err != nil {
		err = fmt.Errorf("starting maintenance of node %q: %w", node, err)
		if late(ctx) && !errors.Is(err, ErrStopped) {
			return e.stamp(prior, prior.Failing(err)), err
		}
		return prior, err
	}
	defer done()
	ctx = turn
	next, err := e.pass(ctx, node, prior)
	if err != nil || !next.Looked {
		e.unrenewed(node)
	}
	if err != nil {
		cause := context.Cause(ctx)
		if cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		err = fmt.Errorf("maintenance of node %q: %w", node, err)
		if ctx.Err() != nil && !late(ctx) { // broken off: nothing stands in the way
			return prior, err
		}
		return e.stamp(prior, e.failing(node, next, err)), err
	}
	return e.stamp(prior, e.tell(node, next)), nil
}

// late says whether ctx has ended because its time was over, whatever reason for that its maker gives.
func late(ctx context.Context) bool { return errors.Is(ctx.Err(), context.DeadlineExceeded) }

// failing is prior, as far as the pass has come, after one that could not be made. What no pass has seen for a while is not said any more.
func (e *Engine) failing(node string, prior State, err error) State {
	next := prior.Failing(err)
	m := e.memory(node)
	if m.blind.IsZero() {
		m.blind = e.now()
	}
	if next.Phase == Succeeded && e.now().Sub(m.blind) >= LeaseLook {
		next.Phase = Running
	}
	if next.Lease == LeaseHeld && !m.expires.IsZero() && !e.now().Before(m.expires) {
		next.Lease, next.LeaseError = LeaseRefused, next.Error
	}
	return next
}

// checkName says what is wrong with a node's name, or with the name of its lease.
func checkName(node string) error {
	if node == "" {
		return errors.New("node name is empty")
	}
	if len(node) > validation.DNS1123SubdomainMaxLength {
		return fmt.Errorf("node name of %d characters is too long: at most %d are allowed", len(node), validation.DNS1123SubdomainMaxLength)
	}
	if reasons := content.IsPathSegmentName(node); len(reasons) > 0 {
		return fmt.Errorf("node name %q is invalid: it %s", node, strings.Join(reasons, ", "))
	}
	return lease.CheckName(node)
}

// pass makes one pass. With an error it returns prior, with what the pass has learned of the lease.
func (e *Engine) pass(ctx context.Context, node string, prior State) (State, error) {
	n, copied, err := e.node(ctx, node)
	if err != nil {
		return prior, err
	}
	if n == nil || (prior.NodeUID != "" && n.UID != prior.NodeUID) {
		return e.gone(ctx, node, prior)
	}
	next := prior
	next.Phase = cmp.Or(prior.Phase, Running)
	next.NodeUID = n.UID
	next.Looked, next.Gone = false, false

	claim, err := e.claim(ctx, n, &next)
	if err != nil {
		return prior, err
	}
	if !claim.ok {
		return next, nil
	}
	prior.Lease, prior.LeaseError, prior.LeaseErrors = next.Lease, next.LeaseError, next.LeaseErrors
	next.NotReadySince = notReadySince(n)
	hold, err := e.hold(ctx, seen{n, copied}, claim.Grant, prior, &next)
	if err != nil {
		return prior, err
	}
	report, err := e.opts.Drainer.Pass(ctx, node)
	if err != nil {
		return prior, err
	}
	m := e.memory(node)
	m.found(report)
	m.blind = time.Time{}
	next.Report, next.Looked = report, true
	next.Progress.Pending = len(report.Pending())
	next.RetryAfter = soonest(claim.RenewIn, LeaseLook, report.RetryAfter, hold.retryAfter)
	next.Error = complaints(next, append([]string{next.LeaseError}, hold.complaints()...)...)
	return e.phase(ctx, node, prior, next, hold.complete)
}

// phase says how far next is: Succeeded once nothing is pending and every mark is in place.
func (e *Engine) phase(ctx context.Context, node string, prior, next State, marked bool) (State, error) {
	switch {
	case !next.Report.Done():
		next.Phase = Running
	case marked && !prior.EverSucceeded:
		if err := e.opts.OnTransition(ctx, Transition{Node: node, Step: Succeed}); err != nil {
			return prior, fmt.Errorf("telling that the drain is done: %w", err)
		}
		next.Phase, next.EverSucceeded = Succeeded, true
	case marked:
		next.Phase = Succeeded
	}
	return next, nil
}

// gone is the state of a node that does not exist: a failure if it never did for this maintenance; else
// what there was stays as it is, and whoever owns the maintenance ends it.
func (e *Engine) gone(ctx context.Context, node string, prior State) (State, error) {
	if prior.Progress.Recorded || prior.NodeUID != "" {
		e.opts.Drainer.Cancel(node)
		e.forget(node)
		prior.RetryAfter, prior.Looked, prior.Gone = 0, false, true
		return prior, nil
	}
	e.forget(node)
	notFound := apierrors.NewNotFound(corev1.Resource("nodes"), node)
	return e.fail(ctx, node, prior, NodeNotFound, notFound.Error())
}

// fail gives the maintenance up.
func (e *Engine) fail(ctx context.Context, node string, prior State, why Failure, words string) (State, error) {
	if err := e.opts.OnTransition(ctx, Transition{Node: node, Step: Fail}); err != nil {
		return prior, fmt.Errorf("telling that the maintenance of node %q failed: %w", node, err)
	}
	next := prior
	next.Phase, next.Failure, next.Error = Failed, why, words
	next.RetryAfter, next.Looked = 0, false
	return e.stamp(prior, next), nil
}

// stamp notes when the state changed, if it did.
func (e *Engine) stamp(prior, next State) State {
	next.Updated = prior.Updated
	if !same(prior, next) {
		next.Updated = e.now()
	}
	return next
}

// same compares what is kept of two states: not what was news in one pass, nor what is a point in time
// from now.
func same(a, b State) bool {
	a.Reheld, b.Reheld, a.RetryAfter, b.RetryAfter, a.Looked, b.Looked = nil, nil, 0, 0, false, false
	a.Gone, b.Gone = false, false
	a.Report, b.Report = kept(a.Report), kept(b.Report)
	return reflect.DeepEqual(a, b)
}

func kept(r Report) Report {
	r.Evicted, r.NewlyBlocked, r.RetryAfter = nil, nil, 0
	return r
}

// node returns the node from the watch while it stands (a copy, which may be a moment old), else from the
// API server; nil if it does not exist, which the API server alone can say.
func (e *Engine) node(ctx context.Context, node string) (n *corev1.Node, copied bool, err error) {
	if c := e.copyOf(node); c != nil && c.Live() {
		if n, ok := c.Get("", node); ok {
			return n, true, nil
		}
	}
	n, err = e.get(ctx, node)
	return n, false, err
}

func (e *Engine) get(ctx context.Context, node string) (*corev1.Node, error) {
	n, err := e.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting node %q: %w", node, err)
	}
	return n, nil
}

func notReadySince(n *corev1.Node) time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// soonest returns the shortest of the positive durations, 0 if there is none.
func soonest(d ...time.Duration) time.Duration {
	var out time.Duration
	for _, v := range d {
		if v > 0 && (out == 0 || v < out) {
			out = v
		}
	}
	return out
}
