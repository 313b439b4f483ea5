// SPDX-License-Identifier: Apache-2.0

package taint_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/taint"
)

// FuzzTaints edits any list of taints by any other: what is not named keeps its value, time and place.
func FuzzTaints(f *testing.F) {
	ours := taint.DrainKey + "||NoSchedule\n" + corev1.TaintNodeUnschedulable + "||NoSchedule"
	for _, have := range []string{
		"", "|", "gpu|a100|NoExecute|1780000000", ours, ours + "\n" + ours,
		taint.DrainKey + "|x|NoSchedule", taint.DrainKey + "||NoExecute|5", taint.DrainKey + "|x|NoSchedule\n" + ours,
		strings.Repeat("a|b|NoSchedule\n", 1000) + ours, "=:|=:|:=", "\xff|\xff|\xff",
	} {
		f.Add(have, ours)
		f.Add(ours, have)
	}
	f.Fuzz(func(t *testing.T, haveText, namedText string) {
		have, named := listOf(haveText), listOf(namedText)
		before := slices.Clone(have)

		with, added := taint.With(have, named...)
		without, removed := taint.Without(have, named...)

		require.Equal(t, before, have, "the input is left alone")
		require.True(t, slices.Equal(before, with[:len(have)]), "what was there keeps value, time and place")
		for _, x := range with[len(have):] {
			if !slices.Contains(named, x) || taint.Has(have, x) { // require is slow on lists of thousands
				require.Fail(t, "it was not named, or is the second of its key and effect", "%+v", x)
			}
		}
		require.False(t, slices.ContainsFunc(named, func(x corev1.Taint) bool { return !taint.Has(with, x) }))
		require.Equal(t, len(with) != len(have), added)
		_, again := taint.With(with, named...)
		require.False(t, again, "a second time changes nothing")

		isNamed := func(x corev1.Taint) bool {
			return slices.ContainsFunc(named, func(n corev1.Taint) bool { return n.Key == x.Key && n.Value == x.Value && n.Effect == x.Effect })
		}
		require.True(t, slices.Equal(slices.DeleteFunc(before, isNamed), without), "what was not named was touched")
		require.Equal(t, len(without) != len(have), removed)
		if !slices.ContainsFunc(named, func(n corev1.Taint) bool { return taint.Has(have, n) }) {
			back, _ := taint.Without(with, named...)
			require.True(t, slices.Equal(have, back), "what With put on, Without takes off")
		}
	})
}

// listOf reads a taint a line: key|value|effect|seconds.
func listOf(text string) []corev1.Taint {
	var out []corev1.Taint
	for line := range strings.Lines(text) {
		part := append(strings.Split(strings.TrimSuffix(line, "\n"), "|"), "", "", "", "")
		t := with(part[0], part[1], corev1.TaintEffect(part[2]))
		if part[3] != "" {
			t.TimeAdded = &metav1.Time{Time: time.Unix(int64(len(part[3])), 0)}
		}
		out = append(out, t)
	}
	return out
}
