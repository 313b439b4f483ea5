// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nodemaint/nodemaint/test/bench/report"
)

// workload is one thing that is measured.
type workload struct {
	name, title string
	// turn is when it is measured, from 1 to turns. Those of one turn run at the same time: what they judge is either far
	// from its bound or no time at all, and none of them takes the machine for itself.
	turn int
	kind kind
}

// turns is how many there are.
const turns = 5

// kind is a way of measuring.
type kind interface {
	// steps says in how many steps measure goes.
	steps() int
	// measure measures. It begins each step with bench.tell.step. Of the section it leaves out what the workload
	// and the run say.
	measure(ctx context.Context, b *bench) (report.Section, error)
}

// workloads returns all, in the order in which they are shown.
func workloads() []workload {
	return []workload{
		{"W1", "20 nodes of 10 pods", 1, race{load: load{nodes: 20, perNode: 10, daemonSets: 5}, targets: targetsOfW1, rounds: 3}},
		{"W2", "8 nodes of 5 pods, 3 of the nodes blocked", 4, blocked{load{nodes: 8, perNode: 4, daemonSets: 5}}},
		{"W3", "1 node of 300 pods", 2, race{load: load{nodes: 1, perNode: 300, daemonSets: 5}, targets: targetsOfW3, rounds: 3}},
		{"W4", "200 nodes of 20 pods", 3, race{
			load: load{nodes: 200, perNode: 20, daemonSets: 5}, targets: targetsOfW4, rounds: 3, longer: 8 * time.Minute, peers: 30 * time.Second,
		}},
		{"W5", "10 nodes in a cluster of 1,000 nodes and 20,000 pods", 5, footprint{nodes: 1000, drained: 10, few: 2, many: 20}},
		{"W6", "from the last pod gone to Succeeded stored", 4, finish{nodes: 20, perNode: 5}},
		{"W7", "from a budget that lets go to the next eviction", 4, wake{nodes: 10}},
		{"W8", "50 blocked nodes at rest", 5, idle{nodes: 50, window: 2 * time.Minute}},
	}
}

func listed() string {
	var b strings.Builder
	for _, w := range workloads() {
		fmt.Fprintf(&b, "%s  %s\n", w.name, w.title)
	}
	return b.String()
}

// choose returns the workloads with these names, separated by commas; all of them for none.
func choose(names string) ([]workload, error) {
	if names == "" {
		return workloads(), nil
	}
	var out []workload
	for name := range strings.SplitSeq(names, ",") {
		before := len(out)
		for _, w := range workloads() {
			if w.name == name {
				out = append(out, w)
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("there is no workload %q; there are:\n%s", name, listed())
		}
	}
	return out, nil
}

// beside says which of those that were chosen were measured at the same time.
func beside(w workload, chosen []workload) string {
	var others []string
	for _, o := range chosen {
		if o.turn == w.turn && o.name != w.name {
			others = append(others, o.name)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf(" Measured at the same time as %s.", strings.Join(others, " and "))
}
