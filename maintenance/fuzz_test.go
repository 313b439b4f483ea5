// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/nodemaint/nodemaint/taint"
)

// What a node of the fuzzers carries beside its record.
const (
	fuzzCordon       = 1 << iota // spec.unschedulable
	fuzzLabel                    // the label, with the value given
	fuzzDrain                    // the drain taint, with the value given
	fuzzUnscheduable             // the taint of a cordoned node, without a value
	fuzzNoExecute                // a taint of our key and another effect
)

// fuzzNode returns a node as an API server can have stored it; nil if the value is none of a label or taint.
func fuzzNode(record, value string, has byte) *corev1.Node {
	if len(validation.IsValidLabelValue(value)) > 0 {
		return nil
	}
	n := nodeWith("", has&fuzzCordon != 0, record, corev1.Taint{Key: "gpu", Value: "x", Effect: corev1.TaintEffectNoExecute})
	if has&fuzzLabel != 0 {
		n.Labels = map[string]string{ExcludeLabel: value}
	}
	if has&fuzzDrain != 0 {
		n.Spec.Taints = append(n.Spec.Taints, valued(drainTaint, value))
	}
	if has&fuzzUnscheduable != 0 {
		n.Spec.Taints = append(n.Spec.Taints, unschedulableTaint)
	}
	if has&fuzzNoExecute != 0 {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taint.DrainKey, Effect: corev1.TaintEffectNoExecute})
	}
	return n
}

// done returns n after the write of c, as the API server would store it.
func (c change) done(n *corev1.Node) *corev1.Node {
	n = n.DeepCopy()
	set := func(have map[string]string, write map[string]*string) map[string]string {
		if have == nil {
			have = map[string]string{}
		}
		for k, v := range write {
			if delete(have, k); v != nil {
				have[k] = *v
			}
		}
		return have
	}
	n.Annotations, n.Labels = set(n.Annotations, c.annotations), set(n.Labels, c.labels)
	if c.taints != nil {
		n.Spec.Taints = *c.taints
	}
	n.Spec.Unschedulable = ptr.Deref(c.unschedulable, n.Spec.Unschedulable)
	return n
}

// notOurs are the taints of n that are not of our keys and effects.
func notOurs(n *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool {
		return t.MatchTaint(&drainTaint) || t.MatchTaint(&unschedulableTaint)
	})
}

// FuzzRecord finds any text in the annotation. What can be read is written again as it was understood; giving the
// node back takes off nothing that the text says was there, and nothing for certain if it cannot be read; and a second
// time finds nothing to do.
func FuzzRecord(f *testing.F) {
	for _, text := range []string{"", "{{{", plainRecord, otherRecord, fullRecord} {
		for has := range byte(32) {
			f.Add(text, "true", has)
		}
	}
	for _, text := range []string{
		"null", "[]", "{}", `{"v":1,"v":2}`, "\xff\xfe", plainRecord + " ", plainRecord + plainRecord, strings.Repeat("[", 20_000),
		strings.Replace(plainRecord, "[]", `["`+strings.Repeat("x", 100_000)+`:NoSchedule"]`, 1),
		strings.Replace(plainRecord, "[]", `["medik8s.io/drain:NoSchedule:NoSchedule","=:NoSchedule","medik8s.io/drain=a=b:NoExecute"]`, 1),
		strings.Replace(plainRecord, us, strings.Repeat("ü", 50_000), 1), strings.Replace(plainRecord, `"total":9`, `"total":1e3`, 1),
		strings.Replace(plainRecord, `"total":9`, `"total":9223372036854775807`, 1), strings.Replace(plainRecord, "{", `{"more":{},"V":2,`, 1),
		strings.Replace(plainRecord, `"label":null`, `"label":"true","Label":null`, 1),
	} {
		f.Add(text, "", byte(math.MaxUint8))
		f.Add(text, strings.Repeat("v", 63), byte(math.MaxUint8))
	}
	f.Fuzz(func(t *testing.T, text, value string, has byte) {
		n := fuzzNode(text, value, has)
		if n == nil {
			t.Skip("the API server stores no such node")
		}
		before := n.DeepCopy()

		r, err := parseRecord(n)
		if r != nil {
			again, err := decodeRecord([]byte(r.encode()))
			require.NoError(t, err, "what we write we can read")
			require.Equal(t, r, again)
		} else if text != "" {
			require.ErrorIs(t, err, ErrRecord)
		}

		back := n
		if err == nil && r != nil && r.Holder == us {
			back = unlabel(n, r).done(n)
		}
		c, restored := giveBack(back, us)
		back = c.done(back)

		require.Equal(t, before, n, "what was read is left alone")
		require.Equal(t, !c.empty(), restored.Changed)
		require.Equal(t, notOurs(n), notOurs(back), "a taint of another's was lost")
		for _, x := range n.Spec.Taints {
			if x.Value != "" || r != nil && r.foreignTaint(x) {
				require.Contains(t, back.Spec.Taints, x, "a taint with a value, or that was there before, was lost")
			}
		}
		if err != nil {
			require.Equal(t, labelOf(n), labelOf(back), "nothing says that the label is ours")
			require.Equal(t, n.Spec.Unschedulable, back.Spec.Unschedulable, "nothing says that the cordon is ours")
		}
		if r == nil && err == nil || r != nil && r.Holder != us {
			require.True(t, c.empty(), "nothing says that anything is ours")
		}
		if r != nil && r.Unschedulable {
			require.Equal(t, n.Spec.Unschedulable, back.Spec.Unschedulable, "an administrator's cordon was lost")
		}
		c, _ = giveBack(back, us)
		require.True(t, c.empty(), "a second time finds nothing to do")
	})
}

// FuzzThereAndBack maintains any node, from any record on it and any that the state carries, and gives it back:
// without a record it is then as it was, and in no case is a taint of another's lost.
func FuzzThereAndBack(f *testing.F) {
	for _, text := range []string{"", "{{{", plainRecord, otherRecord, fullRecord} {
		for has := range byte(32) {
			f.Add(text, "", has, has%2 == 0, has%3 == 0)
			f.Add(text, "true", has, has%2 == 1, has%3 == 1)
			f.Add(text, "false", has, true, false)
		}
	}
	f.Fuzz(func(t *testing.T, text, value string, has byte, resumed, carries bool) {
		n := fuzzNode(text, value, has)
		if n == nil {
			t.Skip("the API server stores no such node")
		}
		var prior State
		if carries {
			prior.Record, _ = decodeRecord([]byte(fullRecord))
		}

		s := settle(n, prior, resumed, us)
		if s.unreadable {
			require.False(t, s.write, "what cannot be read is left")
			return
		}
		require.Equal(t, us, s.record.Holder)
		held := n.DeepCopy()
		if held.Annotations == nil {
			held.Annotations = map[string]string{}
		}
		held.Annotations[RecordAnnotation] = s.record.encode()
		r, err := parseRecord(held)
		require.NoError(t, err, "what we write we can read")
		require.Equal(t, s.record, *r)
		_, err = decodeRecord([]byte(r.reclaim(held, missing(held)).encode()))
		require.NoError(t, err, "so too what we write when marks are put back")
		taints, _ := taint.With(held.Spec.Taints, drainTaint, unschedulableTaint)
		held = change{labels: map[string]*string{ExcludeLabel: ptr.To(labelValue)}, taints: &taints, unschedulable: ptr.To(true)}.done(held)
		require.Empty(t, missing(held))

		back := unlabel(held, r).done(held)
		c, _ := giveBack(back, us)
		back = c.done(back)

		require.NotContains(t, back.Annotations, RecordAnnotation)
		require.Equal(t, notOurs(n), notOurs(back), "a taint of another's was lost")
		if s.count && !resumed { // the record is of what stood there now
			requireSame(t, n, back)
		}
	})
}

// requireSame compares what a maintenance touches, but for the taint that comes with a cordon.
func requireSame(t *testing.T, want, got *corev1.Node) {
	t.Helper()
	require.Equal(t, want.Spec.Unschedulable, got.Spec.Unschedulable)
	require.Equal(t, labelOf(want), labelOf(got))
	mine := func(n *corev1.Node) []string {
		out := []string{}
		for _, x := range n.Spec.Taints {
			if !x.MatchTaint(&unschedulableTaint) || !want.Spec.Unschedulable {
				out = append(out, x.ToString())
			}
		}
		return out
	}
	require.Equal(t, mine(want), mine(got))
}

func labelOf(n *corev1.Node) *string {
	if v, ok := n.Labels[ExcludeLabel]; ok {
		return &v
	}
	return nil
}

// FuzzState reads any state back, as a file or a status could hold one: it is told and counted in bounds, and is the
// same after a second reading.
func FuzzState(f *testing.F) {
	pods := []Pod{{Namespace: "shop", Name: "web-0", Reason: strings.Repeat("ü", 100_000)}, {Budgets: []Budget{{Name: "web"}, {}}}}
	for _, s := range []State{
		{},
		{Phase: Succeeded, Progress: Progress{Recorded: true, Total: 3, Eviction: math.MaxInt, Pending: 1}},
		{Phase: "Paused", Progress: Progress{Recorded: true, Total: -1, Eviction: math.MinInt, Pending: math.MinInt}},
		{Phase: Failed, Failure: "Tired", Report: Report{Leaving: pods, Blocked: pods, Failed: pods, Deferred: pods, Staying: pods}},
		{Phase: Running, Lease: "?", LeaseErrors: math.MaxInt, Record: &Record{}},
	} {
		text, err := json.Marshal(s)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s State
		if json.Unmarshal(text, &s) != nil {
			t.Skip("it is none")
		}
		again, err := json.Marshal(s)
		require.NoError(t, err)
		var back State
		require.NoError(t, json.Unmarshal(again, &back))
		third, err := json.Marshal(back)
		require.NoError(t, err)
		require.JSONEq(t, string(again), string(third))

		require.GreaterOrEqual(t, s.Progress.Percent(), 0)
		require.LessOrEqual(t, s.Progress.Percent(), 100)
		cause, words := s.Explain()
		require.NotEmpty(t, cause)
		require.Contains(t, words, "pods left")
		require.LessOrEqual(t, strings.Count(words, "\n"), 4*(shownPods+1)+1, "at most five pods a cause")
		for line := range strings.Lines(words) {
			require.LessOrEqual(t, len([]rune(line)), shownWords+2)
		}
	})
}
