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
	kind        kind
}

// kind is a way of measuring.
type kind interface {
	// steps says in how many steps measure goes.
	steps() int
	// measure measures. It begins each step with bench.tell.step. Of the section it leaves out what the workload
	// and the run say.
	measure(ctx context.Context, b *bench) (report.Section, error)
}

// workloads returns all, in the order in which they are measured.
func workloads() []workload {
	return []workload{
		{"W1", "20 nodes of 10 pods", race{load: load{nodes: 20, perNode: 10, daemonSets: 5}, targets: targetsOfW1, rounds: 3}},
		{"W2", "8 nodes of 5 pods, 3 of the nodes blocked", blocked{load{nodes: 8, perNode: 4, daemonSets: 5}}},
		{"W3", "1 node of 300 pods", race{load: load{nodes: 1, perNode: 300, daemonSets: 5}, targets: targetsOfW3, rounds: 3}},
		{"W4", "200 nodes of 20 pods", race{
			load: load{nodes: 200, perNode: 20, daemonSets: 5}, targets: targetsOfW4, longer: 8 * time.Minute, peers: time.Minute,
		}},
		{"W5", "10 nodes in a cluster of 1,000 nodes and 20,000 pods", footprint{nodes: 1000, drained: 10, few: 2, many: 20}},
		{"W6", "from the last pod gone to Succeeded stored", finish{nodes: 20, perNode: 5}},
		{"W7", "from a budget that lets go to the next eviction", wake{nodes: 10}},
		{"W8", "50 blocked nodes at rest", idle{nodes: 50, window: 2 * time.Minute}},
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
