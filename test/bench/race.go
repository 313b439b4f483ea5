// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodemaint/nodemaint/test/bench/report"
)

// patience is how long a contender may take if nothing else is said. One that is not done by then is ended, and the
// table says so.
const patience = 4 * time.Minute

// race lets every contender drain the same load, each on a cluster of its own, a copy of one original.
type race struct {
	load    load
	targets func(field) []report.Target
	rounds  int // that ours and the limits run, whose times are close; the peers run once, and so does who was ended
	// longer and peers are how long ours and the limits, and the peers, may take; zero for patience.
	longer, peers time.Duration
}

// patience is how long that contender may take, after those that have run. Where a run is long, the slower one of the
// limits need not end: the better of the two is the limit.
func (r race) patience(c contender, before map[string][]result) time.Duration {
	if c.peer() {
		return cmp.Or(r.peers, patience)
	}
	most := cmp.Or(r.longer, patience)
	if r.longer == 0 || !c.limit() || before[c.name] != nil {
		return most
	}
	for _, runs := range before {
		if limit := field(runs).limit(); limit > 0 {
			most = min(most, limit)
		}
	}
	return most
}

func (r race) steps() int { return 1 + len(r.order(contenders(""))) }

// order returns who runs after whom: in turn, so that what else the machine does meets all of them.
func (r race) order(all []contender) []contender {
	var out []contender
	for round := range r.rounds {
		for _, c := range all {
			if round == 0 || !c.peer() {
				out = append(out, c)
			}
		}
	}
	return out
}

func (r race) measure(ctx context.Context, b *bench) (report.Section, error) {
	all := contenders(b.program)
	b.tell.step("what all begin with")
	of, err := b.original(ctx, r.load)
	if err != nil {
		return report.Section{}, fmt.Errorf("making the load: %w", err)
	}
	runs := map[string][]result{}
	for _, c := range r.order(all) {
		if !strings.Contains(c.name, b.only) {
			continue
		}
		b.tell.step(c.name)
		if ended(runs[c.name]) {
			b.tell.say("not again: it was ended before")
			continue
		}
		one, err := r.one(ctx, b, of, c, runs)
		if err != nil {
			return report.Section{}, fmt.Errorf("%s: %w", c.name, err)
		}
		b.tell.say("%s; CPU: %s itself, %s", seconds(one.wall), seconds(one.used.cpu), one.cluster.each())
		runs[c.name] = append(runs[c.name], one)
		if b.requests {
			defer fmt.Print(one.byKind())
		}
	}
	var f field
	for _, c := range all {
		if done := runs[c.name]; done != nil {
			f = append(f, middleRun(done))
		}
	}
	s := report.Section{How: r.how(), Columns: raceColumns(), Rows: f.rows(), Bars: f.bars()}
	if b.only == "" {
		s.Targets = r.targets(f)
	}
	return s, nil
}

func (r race) how() string {
	how := fmt.Sprintf("All nodes at once. Of the pods on each node %d are DaemonSets' besides, which stay. %d Deployments have a budget "+
		"each that lets half of their pods go; a pod that has left gets a successor on one of %d other nodes. "+
		"A contender that takes more than %g minutes is ended",
		r.load.daemonSets, len(r.load.deployments()), r.load.spare(), cmp.Or(r.longer, patience).Minutes())
	if r.peers > 0 {
		how += fmt.Sprintf(", kubectl drain and the library loop after %g", r.peers.Minutes())
	}
	if r.longer > 0 {
		how += "; of the two limits the second one when it has taken as long as the first, and then it does not run again"
	}
	return how + fmt.Sprintf(". nodemaint and the limits ran %d times, in turn; the run with the median wall is shown, "+
		"and in brackets the fastest and the slowest.", r.rounds)
}

// ended says whether one of these runs was.
func ended(runs []result) bool {
	return slices.ContainsFunc(runs, func(r result) bool { return r.cut })
}

// one lets one contender drain the load.
func (r race) one(ctx context.Context, b *bench, of original, c contender, runs map[string][]result) (result, error) {
	s, err := b.copy(ctx, of)
	if err != nil {
		return result{}, err
	}
	defer s.close()
	return s.drain(ctx, c, s.nodes, s.nodes, r.patience(c, runs))
}

// drain lets the contender drain nodes, until those that are watched are rid of their pods and, if these are all,
// the contender is done.
func (s *stage) drain(ctx context.Context, c contender, nodes, watched []string, patience time.Duration) (result, error) {
	g, err := s.measure(ctx, watched)
	if err != nil {
		return result{}, err
	}
	defer g.stop()
	if c.prepare != nil {
		if err := c.prepare(ctx, s); err != nil {
			return result{}, err
		}
	}
	before, err := s.clusterCPU()
	if err != nil {
		return result{}, err
	}
	began := time.Now()
	at, err := c.begin(ctx, s, nodes)
	if err != nil {
		return result{}, err
	}
	r := result{name: c.name, pods: g.pods, nodes: len(watched)}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = g.wait(limited)
	if err == nil && len(watched) == len(nodes) {
		err = at.wait(limited)
	}
	r.wall = time.Since(began)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		r.cut, r.left, err = true, g.left(), nil
	}
	r.times = g.times(began)
	after, cpuErr := s.clusterCPU()
	r.cluster = after.since(before)
	used, endErr := at.end()
	r.used = used
	if err := errors.Join(err, cpuErr, endErr); err != nil {
		return r, err
	}
	events, err := s.requests(c.user, began)
	r.requests = events
	return r, err
}
