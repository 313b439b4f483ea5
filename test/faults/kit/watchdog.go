// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nodemaint/nodemaint/test/deploy"
	"github.com/nodemaint/nodemaint/test/invariant"
)

// Watchdog looks at the invariants of any moment all the while.
type Watchdog struct {
	stage *Stage
	end   context.CancelFunc
	all   sync.WaitGroup
	took  int
	seen  []sight
}

// sight is what was broken in one look, which took that time.
type sight struct {
	broken   []invariant.Breach
	from, to time.Time
}

// lookEvery is the pause between two looks.
const lookEvery = 300 * time.Millisecond

// Watch begins to look, until End.
func (s *Stage) Watch(ctx context.Context) *Watchdog {
	ctx, end := context.WithCancel(ctx)
	w := &Watchdog{stage: s, end: end}
	w.all.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			_ = s.looks.during(func(before map[string]invariant.Look) error { return w.look(ctx, before) }) // the API server may be away
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return w
}

func (w *Watchdog) look(ctx context.Context, before map[string]invariant.Look) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	began := time.Now()
	now, err := invariant.Read(ctx, w.stage.Client)
	if err != nil {
		return err
	}
	w.took++
	if all := invariant.Always(now, before); len(all) > 0 {
		w.seen = append(w.seen, sight{all, began, time.Now()})
	}
	return nil
}

// End ends it, and returns how many looks it took. The error says what was broken.
func (w *Watchdog) End() (looks int, err error) {
	w.end()
	w.all.Wait()
	var errs []error
	words, err := w.unexplained()
	if err != nil {
		errs = append(errs, err)
	}
	for _, told := range words {
		errs = append(errs, fmt.Errorf("%w: %s", errBroken, told))
	}
	if w.took == 0 {
		errs = append(errs, errNeverLooked)
	}
	return w.took, errors.Join(errs...)
}

// unexplained returns what was broken, in words, but for what a gap explains.
func (w *Watchdog) unexplained() ([]string, error) {
	if len(w.seen) == 0 {
		return nil, nil
	}
	log, err := w.stage.audit()
	gaps := invariant.Gaps(log, deploy.User)
	var words []string
	for _, s := range w.seen {
		for _, b := range invariant.WithoutGaps(s.broken, gaps, s.from, s.to) {
			words = append(words, b.String())
		}
	}
	slices.Sort(words)
	return slices.Compact(words), err
}

var (
	errBroken      = errors.New("broken")
	errNeverLooked = errors.New("the invariants were never looked at")
)
