// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"
)

// quantity is one thing that must not grow.
type quantity struct {
	name string
	of   func(sample) float64
	// most is by how much it may grow, in percent, from the first to the last quiet sample after the warm-up; and by
	// how much the straight line that fits them all best may rise over that time, in percent of their mean.
	most float64
}

// quantities are what must not grow. Memory has some play: the Go runtime gives it back when it sees fit.
func quantities() []quantity {
	return []quantity{
		{"memory", func(s sample) float64 { return s.memory }, 20},
		{"goroutines", func(s sample) float64 { return s.goroutines }, 5},
		{"watches", func(s sample) float64 { return s.watches }, 5},
	}
}

// growth is how a quantity grew after the warm-up.
type growth struct {
	quantity
	first, last float64
	// grown and rise are in percent, as quantity.most.
	grown, rise float64
}

// warm leaves out the first third of the samples, one at least: caches fill, and the heap finds its size.
func warm(samples []sample) []sample { return samples[max(1, len(samples)/3):] }

// measure works out how a quantity grew. There must be two samples after the warm-up.
func measure(q quantity, samples []sample) (growth, error) {
	if len(samples) < fewest {
		return growth{quantity: q}, fmt.Errorf("%s: %w: %d quiet samples of one process, %d are needed", q.name, errTooFew, len(samples), fewest)
	}
	samples = warm(samples)
	first, last := samples[0], samples[len(samples)-1]
	g := growth{quantity: q, first: q.of(first), last: q.of(last)}
	var mean float64
	for _, s := range samples {
		mean += q.of(s) / float64(len(samples))
	}
	if g.first <= 0 || mean <= 0 {
		return g, fmt.Errorf("%s: %w", q.name, errNothing)
	}
	g.grown = 100 * (g.last - g.first) / g.first
	g.rise = 100 * slope(q, samples) * (last.at - first.at).Seconds() / mean
	return g, nil
}

var (
	errTooFew  = errors.New("the run was too short")
	errNothing = errors.New("none was measured")
	errGrows   = errors.New("it grows")
)

// slope is that of the line of least squares through the samples, a second.
func slope(q quantity, samples []sample) float64 {
	var t, v float64 // means
	for _, s := range samples {
		t += s.at.Seconds() / float64(len(samples))
		v += q.of(s) / float64(len(samples))
	}
	var both, square float64
	for _, s := range samples {
		d := s.at.Seconds() - t
		both += d * (q.of(s) - v)
		square += d * d
	}
	if square == 0 {
		return 0
	}
	return both / square
}

// flat returns an error if it grew by more than it may.
func (g growth) flat() error {
	if g.grown > g.most || g.rise > g.most {
		return fmt.Errorf("%s: %w: %.1f %% from first to last, the line rises %.1f %%; %.0f %% is the most", g.name, errGrows, g.grown, g.rise, g.most)
	}
	return nil
}

// judge returns what is not flat.
func (r *run) judge() []error {
	var out []error
	for _, q := range quantities() {
		g, err := measure(q, r.quiet())
		if err == nil {
			err = g.flat()
		}
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}

func minutes(d time.Duration) string { return fmt.Sprintf("%.1f min", d.Minutes()) }
