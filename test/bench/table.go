// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// table compares the results in Markdown: the time until a node is rid of its pods, from the start, and what
// the contender used. The last column sets its wall time in proportion to the limit's, the better of the two.
func table(name string, l load, results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: %d nodes of %d pods\n\n", name, l.nodes, l.perNode)
	b.WriteString("| contender | wall | first | median | requests | a pod | peak memory | CPU | wall to the limit |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d | %.2f | %d MiB | %s | %s |\n",
			r.name, seconds(r.wall), seconds(r.first), seconds(r.median), r.requests, r.perPod(), r.used.peak>>20, seconds(r.used.cpu), ratio(r, results))
	}
	return b.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func ratio(r result, all []result) string {
	var limit time.Duration
	for _, o := range all {
		if strings.HasPrefix(o.name, "limit") && (limit == 0 || o.wall < limit) {
			limit = o.wall
		}
	}
	if limit == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(r.wall)/float64(limit))
}

// byKind lists the requests by verb, resource and answer.
func (r result) byKind() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s:\n", r.name)
	for _, k := range slices.Sorted(maps.Keys(r.kinds)) {
		fmt.Fprintf(&b, "%6d %s\n", r.kinds[k], k)
	}
	return b.String()
}
