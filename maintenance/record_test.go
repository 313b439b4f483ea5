// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const us = "node-maintenance"

// nodeWith returns a node with that label (empty: none), cordon and taints, as key=value:NoSchedule, and
// record (empty: none).
func nodeWith(label string, cordoned bool, record string, taints ...corev1.Taint) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{Unschedulable: cordoned, Taints: taints}}
	if label != "" {
		n.Labels = map[string]string{ExcludeLabel: label}
	}
	if record != "" {
		n.Annotations = map[string]string{RecordAnnotation: record}
	}
	return n
}

func valued(t corev1.Taint, value string) corev1.Taint {
	t.Value = value
	return t
}

const (
	plainRecord = `{"v":1,"holder":"node-maintenance","unschedulable":false,"taints":[],"label":null,"total":9,"eviction":4}`
	otherRecord = `{"v":1,"holder":"sbr","unschedulable":true,"taints":[],"label":null,"total":9,"eviction":4}`
	fullRecord  = `{"v":1,"holder":"node-maintenance","unschedulable":true,"taints":["medik8s.io/drain=x:NoSchedule","node.kubernetes.io/unschedulable:NoSchedule"],"label":"false","total":9,"eviction":4}`
)

func TestParseRecord(t *testing.T) {
	for _, text := range []string{plainRecord, otherRecord, fullRecord} {
		r, err := parseRecord(nodeWith("", false, text))
		require.NoError(t, err)
		require.Equal(t, text, r.encode(), "the same keys in the same order")
	}
	r, err := parseRecord(nodeWith("", false, ""))
	require.NoError(t, err)
	require.Nil(t, r)
	require.Contains(t, Record{}.encode(), `"taints":[]`)
	for _, tt := range []struct{ reason, text string }{
		{"no JSON", `{{{`},
		{"JSON of another kind", `[]`},
		{"of another version", strings.Replace(plainRecord, `"v":1`, `"v":2`, 1)},
		{"without a version", strings.Replace(plainRecord, `"v":1,`, ``, 1)},
		{"without a holder", strings.Replace(plainRecord, us, ``, 1)},
		{"with a count that cannot be", strings.Replace(plainRecord, `"total":9`, `"total":-9`, 1)},
		{"that does not say whether the node was cordoned", strings.Replace(plainRecord, `"unschedulable":false,`, ``, 1)},
		{"with a cordon of another type", strings.Replace(plainRecord, `false`, `"no"`, 1)},
		{"with no taints, not even none", strings.Replace(plainRecord, `[]`, `null`, 1)},
		{"without the label", strings.Replace(plainRecord, `"label":null,`, ``, 1)},
		{"with a taint that is none", strings.Replace(plainRecord, `[]`, `["medik8s.io/drain"]`, 1)},
		{"with a taint of no effect known", strings.Replace(plainRecord, `[]`, `["medik8s.io/drain:Never"]`, 1)},
		{"with a label that no node can have", strings.Replace(plainRecord, `"label":null`, `"label":"not a label!"`, 1)},
		{"null", `null`},
		{"nothing", ` `},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			_, err := parseRecord(nodeWith("", false, tt.text))
			require.ErrorIs(t, err, ErrRecord)
			require.ErrorContains(t, err, `of node "n1"`)
		})
	}
}

func TestSettle(t *testing.T) {
	ours := Record{V: 1, Holder: us, Taints: []string{}}
	carried := Record{V: 1, Holder: "before", Unschedulable: true, Taints: []string{}, Total: 9, Eviction: 4}
	with := func(r Record, f func(*Record)) Record {
		f(&r)
		return r
	}
	marked := func(record string) *corev1.Node {
		return nodeWith("true", true, record, drainTaint, unschedulableTaint)
	}
	for _, tt := range []struct {
		reason  string
		node    *corev1.Node
		prior   State
		resumed bool
		want    settled
	}{
		{"a clean node: nothing was there", nodeWith("", false, ""), State{}, false, settled{record: ours, write: true, count: true}},
		{
			"an admin's cordon, taint and label are recorded as they are", nodeWith("false", true, "", valued(drainTaint, "x"), unschedulableTaint), State{}, true,
			settled{record: with(ours, func(r *Record) {
				r.Unschedulable, r.Label = true, ptr.To("false")
				r.Taints = []string{"medik8s.io/drain=x:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"}
			}), write: true, count: true},
		},
		{
			"our taint, but the lease was not ours: it is foreign", marked(""), State{}, false,
			settled{record: with(ours, func(r *Record) {
				r.Unschedulable, r.Label = true, ptr.To("true")
				r.Taints = []string{"medik8s.io/drain:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"}
			}), write: true, count: true},
		},
		{"our taint and our lease: left by an operator without records", marked(""), State{}, true, settled{record: ours, write: true, count: true}},
		{
			"the same with a label that it did not set", nodeWith("false", true, "", drainTaint), State{}, true,
			settled{record: with(ours, func(r *Record) { r.Label = ptr.To("false") }), write: true, count: true},
		},
		{
			"our lease, but no taint of ours: a cordon is an admin's", nodeWith("", true, ""), State{}, true,
			settled{record: with(ours, func(r *Record) { r.Unschedulable = true }), write: true, count: true},
		},
		{
			"our record", marked(plainRecord), State{}, true,
			settled{record: with(ours, func(r *Record) { r.Total, r.Eviction = 9, 4 })},
		},
		{
			"another holder's record: taken over, the rest kept", marked(otherRecord), State{}, false,
			settled{record: with(ours, func(r *Record) { r.Unschedulable, r.Total, r.Eviction = true, 9, 4 }), write: true},
		},
		{
			"another holder's record on a node without marks: kept too", nodeWith("", false, otherRecord), State{}, false,
			settled{record: with(ours, func(r *Record) { r.Unschedulable, r.Total, r.Eviction = true, 9, 4 }), write: true},
		},
		{"our record, but no mark: stale", nodeWith("", false, fullRecord), State{}, true, settled{record: ours, write: true, count: true}},
		{
			"our record and one mark: not stale", nodeWith("", true, plainRecord), State{}, true,
			settled{record: with(ours, func(r *Record) { r.Total, r.Eviction = 9, 4 })},
		},
		{
			"removed while we hold: from the state", marked(""), State{Record: &carried}, true,
			settled{record: with(carried, func(r *Record) { r.Holder = us }), write: true},
		},
		{
			"removed, and another had the lease and left not all marks: he gave the node back", nodeWith("", true, ""), State{Record: &carried}, false,
			settled{record: with(ours, func(r *Record) { r.Unschedulable = true }), write: true, count: true},
		},
		{
			"removed, and the lease too, but our marks stand: from the state", marked(""), State{Record: &carried}, false,
			settled{record: with(carried, func(r *Record) { r.Holder = us }), write: true},
		},
		{
			"unreadable while we hold: from the state", marked("{{{"), State{Record: &carried}, true,
			settled{record: with(carried, func(r *Record) { r.Holder = us }), write: true},
		},
		{"unreadable, and the state knows nothing: left", marked("{{{"), State{}, true, settled{unreadable: true}},
		{"unreadable on a node without marks: nothing to guess", nodeWith("", false, "{{{"), State{}, true, settled{record: ours, write: true, count: true}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			require.Equal(t, tt.want, settle(tt.node, tt.prior, tt.resumed, us))
		})
	}
}

func TestReclaim(t *testing.T) {
	full, err := parseRecord(nodeWith("", false, fullRecord))
	require.NoError(t, err)
	for _, tt := range []struct {
		reason string
		node   *corev1.Node
		want   func(*Record)
	}{
		{"nothing is missing", nodeWith("true", true, "", valued(drainTaint, "x"), unschedulableTaint), func(*Record) {}},
		{"the admin uncordoned: he has let go, of the taint that came with it too", nodeWith("true", false, "", valued(drainTaint, "x")), func(r *Record) {
			r.Unschedulable, r.Taints = false, []string{"medik8s.io/drain=x:NoSchedule"}
		}},
		{"his drain taint is gone", nodeWith("true", true, "", unschedulableTaint), func(r *Record) {
			r.Taints = []string{"node.kubernetes.io/unschedulable:NoSchedule"}
		}},
		{"his label is gone", nodeWith("", true, "", drainTaint), func(r *Record) { r.Label = nil }},
		{"his label has another value", nodeWith("maybe", true, "", drainTaint), func(r *Record) { r.Label = ptr.To("maybe") }},
		{"the unschedulable taint alone says nothing", nodeWith("true", true, "", drainTaint), func(*Record) {}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			want := *full
			tt.want(&want)
			require.Equal(t, want.encode(), full.reclaim(tt.node, missing(tt.node)).encode())
		})
	}
}

func TestGiveBack(t *testing.T) {
	gpu := corev1.Taint{Key: "gpu", Value: "x", Effect: corev1.TaintEffectNoExecute}
	drained := []corev1.Taint{gpu, drainTaint, unschedulableTaint}
	recordOff := map[string]*string{RecordAnnotation: nil}
	for _, tt := range []struct {
		reason   string
		node     *corev1.Node
		want     change
		restored Restored
	}{
		{"no record: nothing", nodeWith("true", true, "", drained...), change{}, Restored{}},
		{"another holder's: nothing", nodeWith("true", true, otherRecord, drained...), change{}, Restored{}},
		{
			"all is ours", nodeWith("true", true, plainRecord, drained...),
			change{annotations: recordOff, taints: &[]corev1.Taint{gpu}, unschedulable: ptr.To(false)}, Restored{Changed: true, Uncordoned: true},
		},
		{
			"nothing is ours", nodeWith("true", true, fullRecord, valued(drainTaint, "x"), unschedulableTaint),
			change{annotations: recordOff}, Restored{Changed: true},
		},
		{
			"somebody uncordoned it already", nodeWith("", false, plainRecord, gpu, drainTaint),
			change{annotations: recordOff, taints: &[]corev1.Taint{gpu}}, Restored{Changed: true},
		},
		{
			"somebody gave our taint a value: it is his", nodeWith("", true, plainRecord, valued(drainTaint, "y")),
			change{annotations: recordOff, unschedulable: ptr.To(false)}, Restored{Changed: true, Uncordoned: true},
		},
		{
			"a valueless taint that was there before", nodeWith("", true,
				`{"v":1,"holder":"node-maintenance","unschedulable":false,"taints":["medik8s.io/drain:NoSchedule"],"label":null,"total":0,"eviction":0}`, drainTaint),
			change{annotations: recordOff, unschedulable: ptr.To(false)}, Restored{Changed: true, Uncordoned: true},
		},
		{
			"cordoned before: the taint that belongs to it stays, whether it was there already or not", nodeWith("", true,
				`{"v":1,"holder":"node-maintenance","unschedulable":true,"taints":[],"label":null,"total":0,"eviction":0}`, drained...),
			change{annotations: recordOff, taints: &[]corev1.Taint{gpu, unschedulableTaint}}, Restored{Changed: true},
		},
		{
			"unreadable: what is certain, and how to do the rest", nodeWith("true", true, "{{{", drained...),
			change{annotations: recordOff, taints: &[]corev1.Taint{gpu, unschedulableTaint}},
			Restored{Changed: true, Incomplete: true, Commands: []string{
				"kubectl uncordon n1", "kubectl label node n1 remediation.medik8s.io/exclude-from-remediation-",
			}},
		},
		{
			"unreadable, and nothing else is left", nodeWith("", false, "{{{"),
			change{annotations: recordOff}, Restored{Changed: true, Incomplete: true},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			got, restored := giveBack(tt.node, us)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.restored, restored)
		})
	}
}

func TestUnlabel(t *testing.T) {
	off := func(v *string) change { return change{labels: map[string]*string{ExcludeLabel: v}} }
	for _, tt := range []struct {
		reason string
		label  string
		before *string
		want   change
	}{
		{"ours: off", "true", nil, off(nil)},
		{"it had another value before: back", "true", ptr.To("false"), off(ptr.To("false"))},
		{"it was there before: stays", "true", ptr.To("true"), change{}},
		{"somebody took it off", "", nil, change{}},
		{"somebody changed it: it is his", "maybe", nil, change{}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			require.Equal(t, tt.want, unlabel(nodeWith(tt.label, false, ""), &Record{Label: tt.before}))
		})
	}
}

func TestPatch(t *testing.T) {
	for _, tt := range []struct {
		reason string
		c      change
		want   string
	}{
		{"always under lock", change{annotations: map[string]*string{"a": ptr.To("b"), "c": nil}}, `{"metadata":{"resourceVersion":"7","annotations":{"a":"b","c":null}}}`},
		{"taints", change{taints: &[]corev1.Taint{drainTaint}}, `{"metadata":{"resourceVersion":"7"},"spec":{"taints":[{"key":"medik8s.io/drain","effect":"NoSchedule"}]}}`},
		{"no taints: as on a node that never had one", change{taints: &[]corev1.Taint{}}, `{"metadata":{"resourceVersion":"7"},"spec":{"taints":null}}`},
		{"uncordon", change{unschedulable: ptr.To(false)}, `{"metadata":{"resourceVersion":"7"},"spec":{"unschedulable":null}}`},
		{"cordon", change{unschedulable: ptr.To(true)}, `{"metadata":{"resourceVersion":"7"},"spec":{"unschedulable":true}}`},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := tt.c.patch("7")
			require.NoError(t, err)
			require.JSONEq(t, tt.want, string(got))
			require.False(t, tt.c.empty())
		})
	}
	require.True(t, change{}.empty())
}
