// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// shownPods is how many pods are named for each cause.
	shownPods = 5
	// shownWords is how many characters a line may have: what a webhook or another holder writes is unbounded, and
	// a text that is too long for where it is to be stored would hide all the others.
	shownWords = 1000
)

// Cause is why a drain is where it is: the reason of a Drained condition.
type Cause string

// The causes.
const (
	CauseDrained         Cause = "Drained"         // no pod is left that must leave
	CauseDraining        Cause = "Draining"        // evictions are under way, and nothing keeps them
	CauseBlockedByBudget Cause = "BlockedByBudget" // a budget allows no disruption
	CauseEvictionRefused Cause = "EvictionRefused" // evictions are refused for another reason
	CauseTerminating     Cause = "Terminating"     // what is left was told to leave, and takes its time
	CauseLatePods        Cause = "LatePods"        // pods that came during the drain are left
	CauseNodeNotReady    Cause = "NodeNotReady"    // pods were told to leave a node that cannot end them
)

// Explain says how far the drain is and what keeps it: the weightiest cause, and a text that begins
// "N of M pods left" and has a line for each cause, with at most five pods each. It names points in time,
// never durations, so that the same state is always told in the same words.
func (s State) Explain() (Cause, string) {
	late := slices.DeleteFunc(slices.Clone(s.Report.Deferred), func(p Pod) bool { return !p.Late })
	waits := slices.DeleteFunc(slices.Clone(s.Report.Deferred), func(p Pod) bool { return p.Late })
	pending := s.Progress.Pending
	lines := []string{fmt.Sprintf("%d of %d pods left", pending, max(s.Progress.Eviction, pending))}
	lines = append(lines, podLines(s.Report.Blocked)...)
	lines = append(lines, podLines(s.Report.Failed)...)
	lines = append(lines, podLines(late)...)
	lines = append(lines, podLines(withReason(waits))...)
	if pending > 0 && !s.NotReadySince.IsZero() {
		lines = append(lines, "the node is not ready since "+clockTime(s.NotReadySince))
	}
	return s.cause(late), strings.Join(lines, "\n")
}

func (s State) cause(late []Pod) Cause {
	r := s.Report
	switch {
	case s.Phase == Succeeded && r.Done():
		return CauseDrained
	case len(r.Blocked) > 0:
		return CauseBlockedByBudget
	case len(r.Failed) > 0:
		return CauseEvictionRefused
	case len(late) > 0:
		return CauseLatePods
	case len(r.Leaving) > 0 && !s.NotReadySince.IsZero():
		return CauseNodeNotReady
	case len(r.Leaving) > 0 && len(r.Deferred) == 0:
		return CauseTerminating
	default:
		return CauseDraining
	}
}

// complaints are the lines of State.Error: those given, as far as they say something, and what stands in
// the way of the drain.
func complaints(s State, own ...string) string {
	lines := slices.DeleteFunc(own, func(l string) bool { return l == "" })
	lines = append(lines, podLines(s.Report.Blocked)...)
	lines = append(lines, podLines(s.Report.Failed)...)
	return strings.Join(lines, "\n")
}

// podLines returns a line for each pod that says why it is there: at most shownPods, then a count.
func podLines(pods []Pod) []string {
	var lines []string
	for i, p := range pods {
		if i == shownPods {
			return append(lines, fmt.Sprintf("and %d more", len(pods)-shownPods))
		}
		lines = append(lines, brief(podLine(p)))
	}
	return lines
}

func podLine(p Pod) string { return p.Namespace + "/" + p.Name + ": " + p.Why() }

// brief cuts words off after shownWords characters.
func brief(words string) string {
	n := 0
	for i := range words {
		if n == shownWords {
			return words[:i] + "…"
		}
		n++
	}
	return words
}

func withReason(pods []Pod) []Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return p.Reason == "" })
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05Z") }
