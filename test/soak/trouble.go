// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/nodemaint/nodemaint/test/program"
)

// trouble is one thing that happens to the operator.
type trouble struct {
	name   string
	happen func(ctx context.Context, r *run) error
}

// troubles returns what may happen. A killed operator begins with an empty memory, so that nothing could be said of
// its growth: that happens in the first third of the time only.
func troubles(early bool) []trouble {
	all := []trouble{
		{"connection refused", func(ctx context.Context, r *run) error { return r.away(ctx, r.stage.Operator.Proxy.Refuse) }},
		{"connection silent", func(ctx context.Context, r *run) error { return r.away(ctx, r.stage.Operator.Proxy.Silence) }},
		{"watches dropped", func(_ context.Context, r *run) error { r.stage.Operator.Proxy.Cut(); return nil }},
	}
	if early {
		all = append(all, trouble{"operator killed", kill})
	}
	return all
}

// disturb lets one trouble after another happen until ctx ends.
func (r *run) disturb(ctx context.Context) error {
	for {
		if err := program.Pause(ctx, r.upTo(4*time.Second)); err != nil {
			return err
		}
		all := troubles(time.Since(r.began) < r.length/3)
		t := all[r.dice.IntN(len(all))]
		r.faults[t.name]++
		if err := t.happen(ctx, r); err != nil {
			return err
		}
	}
}

// away disturbs the connection for a while.
func (r *run) away(ctx context.Context, disturb func()) error {
	disturb()
	return errors.Join(program.Pause(ctx, r.upTo(4*time.Second)), r.stage.Operator.Proxy.Pass())
}

// kill ends the operator's process; it is started again at once.
func kill(ctx context.Context, r *run) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stage.Operator.Kill()
	r.process++
	return r.stage.Operator.Start(ctx)
}

// mend lets the operator work again.
func (r *run) mend(ctx context.Context) error {
	if err := r.stage.Operator.Proxy.Pass(); err != nil {
		return err
	}
	return r.stage.Operator.Ready(ctx)
}

func (r *run) upTo(most time.Duration) time.Duration {
	return time.Duration(r.dice.Int64N(int64(most)))
}
