// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/nodemaint/nodemaint/lease"
)

// claimed is how the lease stands after a pass asked for it.
type claimed struct {
	lease.Grant
	ok bool // it is ours: the pass may go on
}

// claim makes the lease of n ours, or keeps it so. Not ok: nothing may be done to the node in this pass,
// and next says why.
func (e *Engine) claim(ctx context.Context, n *corev1.Node, next *State) (claimed, error) {
	prior := *next
	grant, err := e.opts.Lease.Acquire(ctx, n)
	if next.LeaseError = ""; err != nil {
		next.LeaseError = brief(err.Error())
	}
	var held *lease.HeldError
	var refused *lease.RefusedError
	switch {
	case err == nil:
		grant.RenewIn = max(grant.RenewIn, time.Second)
		next.Lease, next.LeaseErrors = LeaseHeld, 0
		m := e.memory(n.Name)
		m.renew, m.expires = e.now().Add(grant.RenewIn), grant.Expires
		return claimed{Grant: grant, ok: true}, nil
	case errors.As(err, &held) && !e.begun(n, *next):
		next.Phase, next.Lease, next.Error = Running, LeaseHeldByAnother, next.LeaseError
		next.RetryAfter = soonest(LeaseRetry, held.Expires.Sub(e.now()))
		return claimed{}, nil
	case errors.As(err, &held):
		next.Lease = LeaseTaken
		return claimed{}, e.leaseFailure(ctx, n.Name, prior, next)
	case errors.As(err, &refused) && refused.Lapsed:
		next.Lease = LeaseRefused
		return claimed{}, e.leaseFailure(ctx, n.Name, prior, next)
	case errors.As(err, &refused) && refused.Held && next.LeaseErrors == 0:
		// Until our last renewal has run out the refusal is told, and changes nothing else.
		next.Lease = LeaseRefused
		return claimed{Grant: lease.Grant{RenewIn: LeaseRetry, Resumed: true}, ok: true}, nil
	case errors.As(err, &refused):
		e.opts.Drainer.Cancel(n.Name) // nobody knows whose it is
		next.Lease, next.Error, next.RetryAfter = LeaseRefused, next.LeaseError, LeaseRetry
		return claimed{}, nil
	default:
		return claimed{}, err
	}
}

// unrenewed ends what is still to be evicted from node if its lease is due: a pass that would have renewed it did not
// come so far, and the next may come when it has run out.
func (e *Engine) unrenewed(node string) {
	e.mu.Lock()
	m := e.memories[node]
	e.mu.Unlock()
	if m != nil && !e.now().Before(m.renew) {
		e.opts.Drainer.Cancel(node)
	}
}

// begun says whether this maintenance had the lease before: its state says so, or the record on the node.
func (e *Engine) begun(n *corev1.Node, s State) bool {
	if s.Progress.Recorded {
		return true
	}
	r, err := parseRecord(n)
	return err == nil && r != nil && r.Holder == e.opts.Lease.Holder()
}

// leaseFailure counts a failure, at most one in LeaseRetry, and gives the node back when there were too
// many in a row. It sets next. One that does not count leaves all as it was, the words too: a change would
// move the time from which the next one is counted.
func (e *Engine) leaseFailure(ctx context.Context, node string, prior State, next *State) error {
	e.opts.Drainer.Cancel(node)
	pause := prior.Updated.Add(LeaseRetry).Sub(e.now())
	ahead := pause > 2*LeaseRetry // whoever wrote that time had another clock: it says nothing
	if prior.LeaseErrors > 0 && pause > 0 && !ahead {
		*next = prior
		next.RetryAfter = pause
		return nil
	}
	next.LeaseErrors++
	next.Phase, next.Error, next.RetryAfter = Running, next.LeaseError, LeaseRetry
	if next.LeaseErrors <= maxLeaseErrors {
		return nil
	}
	n, err := e.get(ctx, node)
	if err == nil && n != nil && e.begun(n, prior) {
		_, err = e.restore(ctx, n)
	}
	if err != nil {
		return fmt.Errorf("giving node %q back: %w", node, err)
	}
	if err := e.opts.Lease.Release(ctx, node); err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("giving node %q back: %w", node, err)
	}
	e.forget(node)
	words := fmt.Sprintf("maintenance failed: lease could not be extended after %d attempts", next.LeaseErrors)
	// There is no record any more, so nothing is drained and nothing left to leave.
	next.Progress.Recorded, next.Progress.Pending, next.Report = false, 0, Report{}
	failed, err := e.fail(ctx, node, *next, LeaseLost, words)
	if err == nil {
		*next = failed
	}
	return err
}
