// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrCrashed answers everything that a crashed client still asks for.
	ErrCrashed = errors.New("maintenancetest: the client has crashed")
	// ErrInjected is the answer of a rule for which no other error was given.
	ErrInjected = errors.New("maintenancetest: injected failure")
)

// Rule is a fault that waits for requests, until it is used up (Times) or removed. Several
// rules may meet one request: they act in the order in which they were made, and the first
// error stands.
type Rule struct {
	c             *Cluster
	match         Match
	before, after action // of the effect of the request

	mu       sync.Mutex
	limit    int // of hits; negative: none
	hits     int
	first    chan struct{} // closed by the first hit
	released chan struct{} // closed by Release and Remove
}

type action func(ctx context.Context, n int) error

// Fail answers matching requests with an error; they have no effect. A nil error is
// ErrInjected.
func (c *Cluster) Fail(m Match, err error) *Rule { return c.rule(m, answer(err), nothing) }

// Lose lets matching requests take effect and then answers them with an error, like a
// response that gets lost. A nil error is ErrInjected.
func (c *Cluster) Lose(m Match, err error) *Rule { return c.rule(m, nothing, answer(err)) }

// Hold keeps matching requests waiting, before they have any effect, until Release, the
// end of their context (its error is then their answer), or Close. They are InFlight.
func (c *Cluster) Hold(m Match) *Rule {
	released := make(chan struct{})
	return c.add(&Rule{match: m, before: c.untilClosed(released), after: nothing, released: released})
}

// HoldAnswer lets matching requests take effect and keeps their answer back, until
// Release, the end of their context, or Close.
func (c *Cluster) HoldAnswer(m Match) *Rule {
	released := make(chan struct{})
	return c.add(&Rule{match: m, before: nothing, after: c.untilClosed(released), released: released})
}

// Delay keeps each matching request waiting for a time on the cluster's clock, before it
// has any effect.
func (c *Cluster) Delay(m Match, d time.Duration) *Rule {
	return c.rule(m, func(ctx context.Context, _ int) error { return c.sleep(ctx, d) }, nothing)
}

// Then calls f after each matching request has taken effect and before it is answered: of what f changes the
// client does not know when it has its answer. f may use the cluster.
func (c *Cluster) Then(m Match, f func()) *Rule {
	return c.rule(m, nothing, func(context.Context, int) error {
		f()
		return nil
	})
}

// FailWrite is Fail for the n-th write, counted from 1.
func (c *Cluster) FailWrite(n int, err error) *Rule { return c.Fail(Write(n), err) }

// LoseWrite is Lose for the n-th write, counted from 1.
func (c *Cluster) LoseWrite(n int, err error) *Rule { return c.Lose(Write(n), err) }

// HoldWrite is Hold for the n-th write, counted from 1.
func (c *Cluster) HoldWrite(n int) *Rule { return c.Hold(Write(n)) }

// CrashBefore plays a client that dies just before its n-th write: that write and every
// request after it, reads too, have no effect and get ErrCrashed, until Remove, which is
// the restart. Hits tells whether it came to that.
func (c *Cluster) CrashBefore(n int) *Rule { return c.Fail(from(n), ErrCrashed) }

// CrashAfter plays a client that dies just after its n-th write: that write takes effect
// and gets ErrCrashed, and every request after it has no effect and gets ErrCrashed too,
// until Remove.
func (c *Cluster) CrashAfter(n int) *Rule {
	before := func(_ context.Context, write int) error {
		if write == n {
			return nil
		}
		return ErrCrashed
	}
	return c.rule(from(n), before, answer(ErrCrashed))
}

// from matches the n-th write and everything that arrives later.
func from(n int) Match {
	var reached atomic.Bool
	return func(r Request) bool {
		if r.N >= n {
			reached.Store(true)
		}
		return reached.Load()
	}
}

// OnRequest sets a function that sees every request when it arrives, before any rule; its
// error is the answer. It may use the cluster, and block. nil takes it off.
func (c *Cluster) OnRequest(f func(Request) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hook = f
}

// Times lets a rule meet only the next n matching requests, and returns the rule.
func (r *Rule) Times(n int) *Rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = r.hits + n
	return r
}

// Hits counts the requests that the rule has met.
func (r *Rule) Hits() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hits
}

// Hit is closed when the rule meets its first request.
func (r *Rule) Hit() <-chan struct{} { return r.first }

// Release lets the requests go on that the rule holds. Later ones are not held.
func (r *Rule) Release() { r.Remove() }

// Remove takes the rule off. Requests that it holds go on.
func (r *Rule) Remove() {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if i := slices.Index(r.c.rules, r); i >= 0 {
		r.c.rules = slices.Delete(r.c.rules, i, i+1)
		close(r.released)
	}
}

// take counts a hit, unless the rule is used up.
func (r *Rule) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit >= 0 && r.hits >= r.limit {
		return false
	}
	r.hits++
	if r.hits == 1 {
		close(r.first)
	}
	return true
}

func (c *Cluster) rule(m Match, before, after action) *Rule {
	return c.add(&Rule{match: m, before: before, after: after, released: make(chan struct{})})
}

func (c *Cluster) add(r *Rule) *Rule {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.c, r.limit, r.first = c, -1, make(chan struct{})
	c.rules = append(c.rules, r)
	return r
}

func nothing(context.Context, int) error { return nil }

func answer(err error) action {
	if err == nil {
		err = ErrInjected
	}
	return func(context.Context, int) error { return err }
}

// untilClosed waits for a rule's release, and for everything that must end the wait too.
func (c *Cluster) untilClosed(released <-chan struct{}) action {
	return func(ctx context.Context, _ int) error {
		select {
		case <-released:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-c.closed:
			return errClosed
		}
	}
}
