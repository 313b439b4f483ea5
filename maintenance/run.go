// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// retryMin and retryMax bound the pause after a pass that could not be made.
const (
	retryMin = time.Second
	retryMax = time.Minute
)

// ErrGone says that the node whose maintenance had begun does not exist any more.
var ErrGone = errors.New("the node was deleted during its maintenance")

// Run maintains node until the caller breaks off, ctx ends or the maintenance fails, and yields the state
// whenever it changed or marks were put back, and the error of each pass that could not be made. It holds the
// node after Succeeded too: break then to leave the rest to somebody else. It does not call Stop: what was done
// to the node stays until somebody does, and that ends Run, with ErrStopped. If the node is deleted Run ends too,
// with ErrGone.
func (e *Engine) Run(ctx context.Context, node string) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		wakes, err := e.Watch(ctx, node)
		if err != nil {
			yield(State{}, err)
			return
		}
		v := e.turns.visit(node)
		defer v.leave()
		var state State
		var pause time.Duration
		for {
			next, err := e.start(ctx, v, state)
			if ctx.Err() != nil {
				yield(state, context.Cause(ctx))
				return
			}
			after := next.RetryAfter
			if err != nil {
				pause = min(max(2*pause, retryMin), retryMax)
				after = pause
			} else {
				pause = 0
			}
			if err == nil && next.Gone {
				yield(next, fmt.Errorf("node %q: %w", node, ErrGone))
				return
			}
			changed := err != nil || len(next.Reheld) > 0 || !same(state, next)
			state = next
			if changed && !yield(state, err) || state.Done() || errors.Is(err, ErrStopped) {
				return
			}
			if err != nil {
				e.await(ctx, nil, after) // a wake must not cut the pause short; the next pass reads all there is
			} else {
				e.await(ctx, wakes, after)
			}
		}
	}
}

// await waits for a wake, for the end of ctx, or until after is over, if it is positive.
func (e *Engine) await(ctx context.Context, wakes <-chan struct{}, after time.Duration) {
	var timer <-chan time.Time
	if after > 0 {
		t := e.opts.Clock.NewTimer(after)
		defer t.Stop()
		timer = t.C()
	}
	select {
	case <-wakes:
	case <-timer:
	case <-ctx.Done():
	}
}
