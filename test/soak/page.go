// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
)

// Between these lines docs/reliability.md holds the section of the last run.
const (
	sectionBegins = "<!-- make soak writes from here -->\n"
	sectionEnds   = "<!-- to here -->\n"
)

var errNoPlace = errors.New("there is no place for the section")

// insert puts the section into the document in place of the one that is there.
func insert(document, section string) (string, error) {
	before, rest, begins := strings.Cut(document, sectionBegins)
	_, after, ends := strings.Cut(rest, sectionEnds)
	if !begins || !ends {
		return "", fmt.Errorf("%w: the lines %q and %q are missing", errNoPlace, strings.TrimSpace(sectionBegins), strings.TrimSpace(sectionEnds))
	}
	return before + sectionBegins + section + sectionEnds + after, nil
}

// page is what is told of the run.
func (r *run) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## A soak of %s\n\n", minutes(r.length))
	fmt.Fprintf(&b, "%d nodes of %d pods on a real control plane, on a machine of %d cores (%s/%s), were put in and out of maintenance at random, "+
		"while these faults happened to the operator:\n%s.\n\n", nodes, podsPerNode, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, r.listed())
	fmt.Fprintf(&b, "The invariants of `test/invariant` were looked at %d times meanwhile. Now and then every maintenance was ended, every node had to be what "+
		"it was and all be watched that was at first, and once no goroutine had come or gone for %s a sample was taken:\n\n", r.looks, settling)
	b.WriteString(r.table())
	b.WriteString("\nMemory is what is resident by the kernel's count, goroutines are those of the operator's metrics once the API server's idle connections to the webhook were ended, watches are all that are open at the " +
		"API server, whose other clients have a constant number. A killed operator begins anew, so it is killed in the first third of the time only, and growth is that of the last " +
		"process. Its first third of samples, one at least, is left out. Flat is: from the first sample then to the last it grows by no more than the bound, and the " +
		"line of least squares through all rises over that time by no more than the bound, in percent of their mean.\n\n")
	b.WriteString(r.verdict())
	if r.clean {
		fmt.Fprintf(&b, "\nAt the end an engine in the process of this program maintained nodes too, each %d times; not one goroutine was left of it (goleak).\n", embeddedRounds)
	}
	return b.String()
}

func (r *run) listed() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(r.faults)) {
		out = append(out, fmt.Sprintf("%s (%d times)", name, r.faults[name]))
	}
	return strings.Join(out, ", ")
}

// table has a row for each quiet sample.
func (r *run) table() string {
	var b strings.Builder
	b.WriteString("| after | process | maintenances ended | memory | goroutines | watches |\n|---|---|---|---|---|---|\n")
	for _, s := range r.samples {
		if s.when == quiet {
			fmt.Fprintf(&b, "| %s | %d | %d | %.1f MiB | %.0f | %.0f |\n", minutes(s.at), s.process, s.ended, s.memory/(1<<20), s.goroutines, s.watches)
		}
	}
	return b.String()
}

// verdict has a row for each quantity.
func (r *run) verdict() string {
	var b strings.Builder
	b.WriteString("| | first to last | line of least squares | bound | |\n|---|---|---|---|---|\n")
	for _, q := range quantities() {
		g, err := measure(q, r.quiet())
		if err != nil {
			fmt.Fprintf(&b, "| %s | – | – | %.0f %% | %v |\n", q.name, q.most, err)
			continue
		}
		word := "flat"
		if g.flat() != nil {
			word = "**it grows**"
		}
		fmt.Fprintf(&b, "| %s | %+.1f %% | %+.1f %% | %.0f %% | %s |\n", q.name, g.grown, g.rise, q.most, word)
	}
	return b.String()
}
