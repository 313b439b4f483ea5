// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nodemaint/nodemaint/test/bench/report"
)

// blocked drains nodes some of which a budget blocks, and looks at how long the others take beside the same
// without the budget.
type blocked struct {
	load load // and a pinned pod on each node
}

// blocks reports whether the n-th node is one of those with a blocked pod: every third, but not the first.
func blocks(n int) bool { return n%3 == 1 }

const blockedApp = "blocked"

func blockedContenders(program string) []contender {
	return []contender{ours(program), kubectl(), libraryLoop()}
}

func (k blocked) steps() int { return 2 * len(blockedContenders("")) }

func (k blocked) measure(ctx context.Context, b *bench) (report.Section, error) {
	s := report.Section{
		How: fmt.Sprintf("%d nodes of %d pods, all at once; %d of them hold one pod whose budget lets nothing go. The time is that until the last of the other nodes "+
			"is rid of its pods, beside the same nodes in a run without that budget.", k.load.nodes, k.load.perNode+1, k.blockedNodes()),
		Columns: []string{"contender", "last of the other nodes, none blocked", "with blocked ones", "ratio", "requests, none blocked", "with blocked ones"},
	}
	for _, c := range blockedContenders(b.program) {
		b.tell.step(c.name + ", no node blocked")
		free, err := k.one(ctx, b, c, 0)
		if err != nil {
			return s, fmt.Errorf("%s: %w", c.name, err)
		}
		b.tell.step(fmt.Sprintf("%s, %d nodes blocked", c.name, k.blockedNodes()))
		held, err := k.one(ctx, b, c, k.blockedNodes())
		if err != nil {
			return s, fmt.Errorf("%s, with blocked nodes: %w", c.name, err)
		}
		slower := ratio(held.last(), free.last())
		s.Rows = append(s.Rows, []string{c.name, free.atMost(), held.atMost(), fmt.Sprintf("%.2f", slower), fmt.Sprint(len(free.requests)), fmt.Sprint(len(held.requests))})
		if c.name == nameOurs {
			s.Targets = append(s.Targets, report.Target{Text: "last clean node at most 2 times that without blocked ones", Most: 2, Measured: slower, Unknown: free.cut || held.cut})
		}
	}
	return s, nil
}

func (k blocked) blockedNodes() int {
	n := 0
	for i := range k.load.nodes {
		if blocks(i) {
			n++
		}
	}
	return n
}

// one lets one contender drain all nodes until those that no budget may block are rid of their pods. So many
// pods are blocked.
func (k blocked) one(ctx context.Context, b *bench, c contender, pods int) (result, error) {
	s, err := b.setUp(ctx)
	if err != nil {
		return result{}, err
	}
	defer s.close()
	if err := s.populate(ctx, k.load); err != nil {
		return result{}, err
	}
	var clean []string
	for i, n := range s.nodes {
		app := "free"
		if blocks(i) {
			app = blockedApp
		} else {
			clean = append(clean, n)
		}
		if err := s.Create(ctx, pinned("pinned-"+n, n, app, time.Second)); err != nil {
			return result{}, err
		}
	}
	if err := s.awaitRunning(ctx, k.load.nodes*(k.load.perNode+1)); err != nil {
		return result{}, err
	}
	if pods > 0 {
		if err := s.closeBudgets(ctx, map[string]int{blockedApp: pods}); err != nil {
			return result{}, err
		}
	}
	return s.drain(ctx, c, s.nodes, clean, patience)
}

// last is the time of the last node; of a contender that was cut, the time it had.
func (r result) last() time.Duration {
	if r.cut || len(r.times) == 0 {
		return r.wall
	}
	return r.times[len(r.times)-1]
}

func (r result) atMost() string {
	if r.cut {
		return "> " + seconds(r.wall)
	}
	return seconds(r.last())
}
