// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
)

const introduction = `# Benchmarks

<!-- Written by make bench from docs/benchmarks/. What stands in the way of a target is in docs/benchmarks/notes.yaml. -->

How fast a drain is, and what it costs, beside what else there is. Everything runs on one machine: a real control
plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler), with kwok in place of the kubelets, and the
contenders as processes under service accounts of their own. Each contender gets a fresh cluster.

- **nodemaint** is this project's operator with the rights that the manifests give it: one replica, without webhook,
  election and memory limit. It runs before the clock starts.
- **kubectl drain** is one process a node, all at once.
- **library loop** is how an operator works that calls kubectl's ` + "`drain.RunNodeDrain`" + ` from one worker, with a time-out of
  30 s, and comes back after 5 s to a node that it could not drain.
- **limit** is no drain at all: it posts the same evictions as fast as the API server takes them and waits for the
  pods to go. It is measured with 64 in flight, and with one in flight for each budget; the better is the limit.

Requests are counted from the API server's audit log, by user. Peak memory is the resident set; of several
processes, the sum of their peaks. Pods take a second to go unless a workload says otherwise.

` + "`make bench`" + ` measures everything, ` + "`make bench W=W1`" + ` one workload. It ends with exit code 1 if a
target is missed of which this page does not say why. A target that is a time, not a ratio of two, is told and fails nothing:
it depends on the machine.
`

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
