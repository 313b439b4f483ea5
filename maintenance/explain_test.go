// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestExplain(t *testing.T) {
	blocked := func(name string) Pod {
		return Pod{Namespace: "shop", Name: name, Budgets: []Budget{{Name: "web", Healthy: 3, Desired: 3}}}
	}
	terminating := Pod{Namespace: "shop", Name: "db-0", Reason: "terminating"}
	refused := Pod{Namespace: "shop", Name: "api-0", Reason: "admission webhook \"w\" denied\n  the request:\tno"}
	many := func(n int) []Pod {
		var out []Pod
		for i := range n {
			out = append(out, blocked(fmt.Sprintf("web-%d", i)))
		}
		return out
	}
	since := time.Date(2026, 5, 1, 10, 23, 41, 0, time.FixedZone("", 2*3600))
	for _, tt := range []struct {
		reason string
		state  State
		cause  Cause
		text   string
		error  string // what State.Error says of it
	}{
		{"done", State{Phase: Succeeded, Progress: Progress{Recorded: true, Eviction: 6}}, CauseDrained, "0 of 6 pods left", ""},
		{"done, but a mark is missing", State{Phase: Running, Progress: Progress{Recorded: true, Eviction: 6}}, CauseDraining, "0 of 6 pods left", ""},
		{
			"pods take their time", State{Phase: Running, Progress: Progress{Eviction: 6, Pending: 1}, Report: Report{Leaving: []Pod{terminating}}},
			CauseTerminating, "1 of 6 pods left", "",
		},
		{
			"their node does not answer", State{Progress: Progress{Eviction: 6, Pending: 1}, Report: Report{Leaving: []Pod{terminating}}, NotReadySince: since},
			CauseNodeNotReady, "1 of 6 pods left\nthe node is not ready since 08:23:41Z", "",
		},
		{
			"some are not asked for yet", State{Progress: Progress{Eviction: 6, Pending: 2}, Report: Report{Leaving: []Pod{terminating}, Deferred: []Pod{{Namespace: "a", Name: "b"}}}},
			CauseDraining, "2 of 6 pods left", "",
		},
		{
			"a budget blocks", State{Progress: Progress{Eviction: 6, Pending: 2}, Report: Report{Leaving: []Pod{terminating}, Blocked: many(1)}},
			CauseBlockedByBudget, "2 of 6 pods left\nshop/web-0: budget shop/web needs 3 healthy pods and has 3",
			"shop/web-0: budget shop/web needs 3 healthy pods and has 3",
		},
		{
			"at most five pods a cause, then a count", State{Progress: Progress{Eviction: 7, Pending: 8}, Report: Report{Blocked: many(7), Failed: []Pod{refused}}},
			CauseBlockedByBudget,
			"8 of 8 pods left\n" + lines(5) + "and 2 more\nshop/api-0: admission webhook \"w\" denied the request: no",
			lines(5) + "and 2 more\nshop/api-0: admission webhook \"w\" denied the request: no",
		},
		{
			"an eviction is refused", State{Progress: Progress{Eviction: 1, Pending: 1}, Report: Report{Failed: []Pod{refused}}},
			CauseEvictionRefused, "1 of 1 pods left\nshop/api-0: admission webhook \"w\" denied the request: no",
			"shop/api-0: admission webhook \"w\" denied the request: no",
		},
		{
			"several budgets", State{Progress: Progress{Eviction: 1, Pending: 1}, Report: Report{Blocked: []Pod{{
				Namespace: "shop", Name: "x", Reason: "2 budgets select it", Budgets: []Budget{{Name: "a"}, {Name: "b"}},
			}}}},
			CauseBlockedByBudget, "1 of 1 pods left\nshop/x: 2 budgets select it (shop/a, shop/b)", "shop/x: 2 budgets select it (shop/a, shop/b)",
		},
		{
			"a second budget came since", State{Progress: Progress{Eviction: 1, Pending: 1}, Report: Report{Blocked: []Pod{{
				Namespace: "shop", Name: "x", Budgets: []Budget{{Name: "a", Desired: 2, Healthy: 1}, {Name: "b"}},
			}}}},
			CauseBlockedByBudget, "1 of 1 pods left\nshop/x: budget shop/a needs 2 healthy pods and has 1; budget shop/b needs 0 healthy pods and has 0",
			"shop/x: budget shop/a needs 2 healthy pods and has 1; budget shop/b needs 0 healthy pods and has 0",
		},
		{
			"blocked by what the options keep", State{Progress: Progress{Eviction: 1, Pending: 1}, Report: Report{Blocked: []Pod{{Namespace: "shop", Name: "x", Reason: "unmanaged"}}}},
			CauseBlockedByBudget, "1 of 1 pods left\nshop/x: unmanaged", "shop/x: unmanaged",
		},
		{
			"pods keep coming", State{Progress: Progress{Pending: 2}, Report: Report{
				Leaving:  []Pod{terminating},
				Deferred: []Pod{{Namespace: "shop", Name: "w", Late: true, Reason: "ReplicaSet shop/web keeps putting pods on the node"}},
			}},
			CauseLatePods, "2 of 2 pods left\nshop/w: ReplicaSet shop/web keeps putting pods on the node", "",
		},
		{
			"the server asks to wait", State{Progress: Progress{Eviction: 1, Pending: 1}, Report: Report{Deferred: []Pod{{Namespace: "shop", Name: "w", Reason: "slow down"}}}},
			CauseDraining, "1 of 1 pods left\nshop/w: slow down", "",
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			cause, text := tt.state.Explain()
			require.Equal(t, tt.cause, cause)
			require.Equal(t, tt.text, text)
			require.Equal(t, tt.error, complaints(tt.state))
		})
	}
	require.Equal(t, "lease\nshop/x: no", complaints(State{Report: Report{Failed: []Pod{{Namespace: "shop", Name: "x", Reason: "no"}}}}, "lease", ""))
}

// What others wrote may be of any length; what is told of it fits into a condition, and hides nothing else.
func TestExplainIsBrief(t *testing.T) {
	long := strings.Repeat("ä ", 50_000)
	var budgets []Budget
	for i := range 300 {
		budgets = append(budgets, Budget{Name: fmt.Sprintf("budget-%d", i)})
	}
	pods := func(p Pod) []Pod { return slices.Repeat([]Pod{p}, 9) }
	s := State{Progress: Progress{Pending: 36}, Report: Report{
		Blocked:  pods(Pod{Namespace: "shop", Name: "web", Budgets: budgets}),
		Failed:   pods(Pod{Namespace: "shop", Name: "db", Reason: long}),
		Deferred: append(pods(Pod{Namespace: "shop", Name: "slow", Reason: long}), pods(Pod{Namespace: "shop", Name: "late", Reason: long, Late: true})...),
	}}
	_, text := s.Explain()
	for _, text := range []string{text, complaints(s)} {
		require.LessOrEqual(t, utf8.RuneCountInString(text), 32768)
		require.True(t, utf8.ValidString(text))
		require.Equal(t, 5, strings.Count(text, "shop/db: ä ä"))
	}
	require.Contains(t, text, "shop/slow: ä ä")
}

// lines are those of that many blocked pods.
func lines(n int) string {
	out := ""
	for i := range n {
		out += fmt.Sprintf("shop/web-%d: budget shop/web needs 3 healthy pods and has 3\n", i)
	}
	return out
}
