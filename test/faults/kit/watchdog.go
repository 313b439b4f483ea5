// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nodemaint/nodemaint/test/invariant"
)

// Watchdog looks at the invariants of any moment all the while.
type Watchdog struct {
	end  context.CancelFunc
	all  sync.WaitGroup
	took int
	seen map[string]bool // what was broken, in words
}

// lookEvery is the pause between two looks.
const lookEvery = 300 * time.Millisecond

// Watch begins to look, until End.
func (s *Stage) Watch(ctx context.Context) *Watchdog {
	ctx, end := context.WithCancel(ctx)
	w := &Watchdog{end: end, seen: map[string]bool{}}
	w.all.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			_ = s.looks.during(func(before map[string]invariant.Look) error { return w.look(ctx, s, before) }) // the API server may be away
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return w
}

func (w *Watchdog) look(ctx context.Context, s *Stage, before map[string]invariant.Look) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	now, err := invariant.Read(ctx, s.Client)
	if err != nil {
		return err
	}
	w.took++
	for _, b := range invariant.Always(now, before) {
		w.seen[b.String()] = true
	}
	return nil
}

// End ends it, and returns how many looks it took. The error says what was broken.
func (w *Watchdog) End() (looks int, err error) {
	w.end()
	w.all.Wait()
	var errs []error
	for _, words := range slices.Sorted(maps.Keys(w.seen)) {
		errs = append(errs, fmt.Errorf("%w: %s", errBroken, words))
	}
	if w.took == 0 {
		errs = append(errs, errNeverLooked)
	}
	return w.took, errors.Join(errs...)
}

var (
	errBroken      = errors.New("broken")
	errNeverLooked = errors.New("the invariants were never looked at")
)
