// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// arrivals notes when each of a number of things has come about.
type arrivals struct {
	want int
	tell func(have, want int)

	mu      sync.Mutex
	at      map[string]time.Time
	broken  error
	changed chan struct{}
}

func newArrivals(want int, tell func(have, want int)) *arrivals {
	return &arrivals{want: want, tell: tell, at: map[string]time.Time{}, changed: make(chan struct{}, 1)}
}

// mark notes that it has come about now, if it has not before.
func (a *arrivals) mark(name string) {
	a.mu.Lock()
	if a.at[name].IsZero() {
		a.at[name] = time.Now()
	}
	have := len(a.at)
	a.mu.Unlock()
	a.tell(have, a.want)
	a.wake()
}

// lose says that nothing more will be noted.
func (a *arrivals) lose(err error) {
	a.mu.Lock()
	a.broken = err
	a.mu.Unlock()
	a.wake()
}

func (a *arrivals) wake() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// wait waits until all have come about.
func (a *arrivals) wait(ctx context.Context) error { return a.waitFor(ctx, a.want) }

// waitFor waits until n have come about.
func (a *arrivals) waitFor(ctx context.Context, n int) error {
	for {
		a.mu.Lock()
		done, broken := len(a.at) >= n, a.broken
		a.mu.Unlock()
		if done {
			return nil
		}
		if broken != nil {
			return broken
		}
		select {
		case <-a.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// when returns when it came about; the zero time if it has not.
func (a *arrivals) when(name string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at[name]
}

// times returns how long after began each came about, sorted.
func (a *arrivals) times(began time.Time) []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []time.Duration
	for _, t := range a.at {
		out = append(out, t.Sub(began))
	}
	slices.Sort(out)
	return out
}

var errWatchEnded = errors.New("a watch of the benchmark ended")
