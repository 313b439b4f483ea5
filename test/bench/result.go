// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nodemaint/nodemaint/test/bench/report"
	"github.com/nodemaint/nodemaint/test/cluster"
)

// result is what one contender did with one load.
type result struct {
	name        string
	pods, nodes int
	wall        time.Duration   // until the contender is done
	times       []time.Duration // until each node was rid of its pods, sorted
	requests    []cluster.AuditEvent
	used        usage
	cluster     clusterCPU // that the cluster used meanwhile
	cut         bool       // ended before it was done
	left        int        // pods, when it was cut

	fastest, slowest time.Duration // of the runs of which this is the median; zero of one run
}

// middleRun returns the run whose wall is the median, of an odd number of runs.
func middleRun(runs []result) result {
	runs = slices.SortedFunc(slices.Values(runs), func(a, b result) int { return cmp.Compare(a.took(), b.took()) })
	r := runs[len(runs)/2]
	if len(runs) > 1 {
		r.fastest, r.slowest = runs[0].wall, runs[len(runs)-1].took()
	}
	return r
}

// never is how long takes what is not done.
const never = time.Duration(math.MaxInt64)

// took is the wall, or never if the contender was ended before it was done.
func (r result) took() time.Duration {
	if r.cut {
		return never
	}
	return r.wall
}

func (r result) perPod() float64 { return float64(len(r.requests)) / float64(max(r.pods-r.left, 1)) }

// byKind lists the requests by verb, resource and answer.
func (r result) byKind() string {
	kinds := map[string]int{}
	for _, e := range r.requests {
		kinds[fmt.Sprintf("%s %s/%s %d", e.Verb, e.Resource, e.Subresource, e.Code)]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s:\n", r.name)
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&b, "%6d %s\n", kinds[k], k)
	}
	return b.String()
}

// field is the results of all contenders.
type field []result

// of returns the result of a contender; the zero result if it has none.
func (f field) of(name string) result {
	for _, r := range f {
		if r.name == name {
			return r
		}
	}
	return result{}
}

// limit returns the better of the two limits; zero without one.
func (f field) limit() time.Duration {
	limits := slices.DeleteFunc(slices.Clone(f), func(r result) bool { return !strings.HasPrefix(r.name, limitPrefix) || r.cut })
	if len(limits) == 0 {
		return 0
	}
	return slices.MinFunc(limits, func(a, b result) int { return cmp.Compare(a.wall, b.wall) }).wall
}

// ratio of two durations; zero if there is nothing to compare with.
func ratio(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func raceColumns() []string {
	return []string{"contender", "wall", "first", "median", "last", "requests", "a pod", "peak memory", "CPU", "cluster's CPU", "wall to the limit"}
}

func (f field) rows() [][]string {
	var out [][]string
	for _, r := range f {
		wall := seconds(r.wall)
		switch {
		case r.slowest == never:
			wall = fmt.Sprintf("%s (from %.1f, and once not done)", wall, r.fastest.Seconds())
		case r.slowest > 0:
			wall = fmt.Sprintf("%s (%.1f to %.1f)", wall, r.fastest.Seconds(), r.slowest.Seconds())
		}
		proportion := f.toTheLimit(r)
		if r.cut {
			wall = fmt.Sprintf("> %s, %d of %d pods left", wall, r.left, r.pods)
		}
		out = append(out, []string{
			r.name, wall, r.time(0), r.time((r.nodes - 1) / 2), r.time(r.nodes - 1), fmt.Sprint(len(r.requests)), fmt.Sprintf("%.2f", r.perPod()),
			fmt.Sprintf("%d MiB", r.used.peak>>20), seconds(r.used.cpu), r.cluster.String(), proportion,
		})
	}
	return out
}

// toTheLimit is the result's time in proportion to the limit's; a dash if no limit was done.
func (f field) toTheLimit(r result) string {
	if f.limit() == 0 {
		return "–"
	}
	text := fmt.Sprintf("%.2f", ratio(r.wall, f.limit()))
	if r.cut {
		return "> " + text
	}
	return text
}

// time is the time of the n-th node, or a dash if it was not rid of its pods.
func (r result) time(n int) string {
	if n >= len(r.times) {
		return "–"
	}
	return seconds(r.times[n])
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func (f field) bars() []report.Bar {
	var out []report.Bar
	for _, r := range f {
		out = append(out, report.Bar{Contender: r.name, Wall: ratio(r.wall, f.limit()), PerPod: r.perPod(), Cut: r.cut})
	}
	return out
}
