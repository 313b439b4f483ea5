// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/nodemaint/nodemaint/test/faults/kit"
)

// stage is where faults happen.
type stage = kit.Stage

// runner lets faults happen one after another, on one cluster as long as nothing is broken there.
type runner struct {
	options kit.Options
	out     io.Writer
	began   time.Time
	stages  int

	mu      sync.Mutex
	current string
}

// result is what became of one fault.
type result struct {
	fault    fault
	survived string
	looks    int   // at the invariants, while it lasted
	ended    int64 // maintenances
	took     time.Duration
	err      error
}

// all lets the faults happen. One that breaks something does not keep the others from it: they get a new cluster.
func (r *runner) all(ctx context.Context, chosen []fault) []result {
	var out []result
	var s *stage
	for i, f := range chosen {
		if ctx.Err() != nil {
			break
		}
		r.enter(fmt.Sprintf("%d/%d %s", i+1, len(chosen), f.name()))
		res := result{fault: f}
		began := time.Now()
		if s == nil {
			s, res.err = r.setUp(ctx)
		}
		if res.err == nil {
			res = r.one(ctx, s, f)
		}
		res.took = time.Since(began)
		if res.err != nil {
			r.say("BROKEN: %v", res.err)
			res.err = errors.Join(res.err, closed(s))
			s = nil
		} else {
			r.say("survived: %s", res.survived)
		}
		out = append(out, res)
	}
	if err := closed(s); err != nil && len(out) > 0 {
		out[len(out)-1].err = errors.Join(out[len(out)-1].err, err)
	}
	return out
}

func closed(s *stage) error {
	if s == nil {
		return nil
	}
	return s.Close()
}

func (r *runner) setUp(ctx context.Context) (*stage, error) {
	o := r.options
	r.stages++
	o.Dir = filepath.Join(o.Dir, fmt.Sprintf("stage-%d", r.stages))
	return kit.SetUp(ctx, o)
}

// limit is how long one fault may take.
const limit = 8 * time.Minute

// one lets one fault happen, and checks the invariants: of any moment all the while, the others at the end.
func (r *runner) one(ctx context.Context, s *stage, f fault) result {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer cancel()
	r.say("%s", f.title())
	res := result{fault: f}
	before := s.Finished.Load()
	dog := s.Watch(ctx)
	if res.survived, res.err = f.run(ctx, s); res.err == nil {
		res.err = s.Rest(ctx)
	}
	looks, err := dog.End()
	res.looks, res.err = looks, errors.Join(res.err, err)
	res.ended = s.Finished.Load() - before
	return res
}

var errTooLong = fmt.Errorf("it took longer than %s", limit)

// enter says what the following lines are about.
func (r *runner) enter(where string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = where
}

// say tells people where the program is.
func (r *runner) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "%5s  %s: %s\n", time.Since(r.began).Round(time.Second), r.current, fmt.Sprintf(format, args...))
}

// table is what happened, for people.
func table(results []result) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "fault\tsurvived\tmaintenances ended\tlooks at the invariants\ttook\t")
	for _, r := range results {
		survived := r.survived
		if r.err != nil {
			survived = "BROKEN"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t\n", r.fault.name(), survived, r.ended, r.looks, r.took.Round(time.Second))
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

// judge returns an error that says what is broken, or that not all faults have happened.
func judge(results []result, chosen int) error {
	var errs []error
	for _, r := range results {
		if r.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.fault.name(), r.err))
		}
	}
	if len(results) < chosen {
		errs = append(errs, fmt.Errorf("%d of %d faults did not happen", chosen-len(results), chosen))
	}
	return errors.Join(errs...)
}
