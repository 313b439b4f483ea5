// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// introduction is how the page begins.
//
//go:embed introduction.md
var introduction string

// Page is the whole page in Markdown: sections in order of their names, with what the notes explain. chart is the
// path of the chart from the page, or empty for none.
func Page(sections []Section, n Notes, chart string) string {
	sections = slices.Clone(sections)
	slices.SortFunc(sections, func(a, b Section) int { return strings.Compare(a.Workload, b.Workload) })
	var b strings.Builder
	b.WriteString(introduction)
	b.WriteString(targets(sections, n))
	if chart != "" {
		fmt.Fprintf(&b, "\n![Time and requests of each contender](%s)\n", chart)
	}
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s: %s\n\n%s\n\n%s", s.Workload, s.Title, s.How, s.Table())
	}
	b.WriteString(runs(sections))
	return b.String()
}

// targets is a table of all targets, and below it what the notes say on those that are missed.
func targets(sections []Section, n Notes) string {
	var b, why strings.Builder
	b.WriteString("\n## Targets\n\n| workload | must reach | measured | |\n|---|---|---|---|\n")
	for _, s := range sections {
		for _, t := range s.Targets {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.Workload, t.Text, t.value(), verdict(s.Workload, t, n))
			if !t.Met() && n.Explain(s.Workload, t) {
				fmt.Fprintf(&why, "\n**%s, %s**: measured %s. %s\n", s.Workload, t.Text, t.value(), strings.TrimSpace(n[s.Workload][t.Text].Why))
			}
		}
	}
	return b.String() + why.String()
}

// runs says where each section comes from; those of one run share a row.
func runs(sections []Section) string {
	var b strings.Builder
	b.WriteString("\n## Measured\n\n| workloads | when | command | commit | machine | versions |\n|---|---|---|---|---|---|\n")
	var keys []string
	names := map[string][]string{}
	for _, s := range sections {
		r := s.Run
		key := fmt.Sprintf("%s | `%s` | %s | %s | %s", r.Date, r.Command, r.Commit, r.Machine, strings.Join(r.Versions, ", "))
		if names[key] == nil {
			keys = append(keys, key)
		}
		names[key] = append(names[key], s.Workload)
	}
	for _, key := range keys {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(names[key], ", "), key)
	}
	return b.String()
}
