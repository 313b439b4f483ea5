// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
)

// What has become of a target.
const (
	met       = "met"
	missed    = "**missed**"
	explained = "**missed**, see below"
	told      = "**missed**, and depends on the machine"
)

func verdict(workload string, t Target, n Notes) string {
	switch {
	case t.Met():
		return met
	case n.Explain(workload, t):
		return explained
	case t.Timing:
		return told
	}
	return missed
}

// Summary lists the targets of the sections, one a line, for the end of a run.
func Summary(sections []Section, n Notes) string {
	var b strings.Builder
	for _, s := range sections {
		for _, t := range s.Targets {
			fmt.Fprintf(&b, "%s  %-60s %12s  %s\n", s.Workload, t.Text, t.value(), strings.ReplaceAll(verdict(s.Workload, t, n), "**", ""))
		}
	}
	return b.String()
}

// Failed returns the targets that are missed without an explanation, but for times as they are.
func Failed(sections []Section, n Notes) []string {
	var out []string
	for _, s := range sections {
		for _, t := range s.Targets {
			if verdict(s.Workload, t, n) == missed {
				out = append(out, s.Workload+": "+t.Text)
			}
		}
	}
	return out
}
