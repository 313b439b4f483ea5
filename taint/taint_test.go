// SPDX-License-Identifier: Apache-2.0

package taint_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/taint"
)

func with(key, value string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: effect}
}

var (
	added = metav1.NewTime(time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC))
	gpu   = corev1.Taint{Key: "gpu", Value: "a100", Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}
	zone  = with("zone", "", corev1.TaintEffectPreferNoSchedule)
)

func TestWith(t *testing.T) {
	for _, tt := range []struct {
		reason  string
		have    []corev1.Taint
		add     []corev1.Taint
		want    []corev1.Taint
		changed bool
	}{
		{"nothing to add to nothing", nil, nil, nil, false},
		{"the first taint of a node", nil, []corev1.Taint{taint.Drain()}, []corev1.Taint{taint.Drain()}, true},
		{
			"what was there keeps value, time and place", []corev1.Taint{gpu, zone}, []corev1.Taint{taint.Drain(), taint.Unschedulable()},
			[]corev1.Taint{gpu, zone, taint.Drain(), taint.Unschedulable()}, true,
		},
		{"a taint that is there is not added again", []corev1.Taint{taint.Drain(), gpu}, []corev1.Taint{taint.Drain()}, []corev1.Taint{taint.Drain(), gpu}, false},
		{
			"the value of a taint with that key and effect is somebody's",
			[]corev1.Taint{with(taint.DrainKey, "x", corev1.TaintEffectNoSchedule)}, []corev1.Taint{taint.Drain()},
			[]corev1.Taint{with(taint.DrainKey, "x", corev1.TaintEffectNoSchedule)}, false,
		},
		{
			"the same key with another effect is another taint",
			[]corev1.Taint{with(taint.DrainKey, "", corev1.TaintEffectNoExecute)}, []corev1.Taint{taint.Drain()},
			[]corev1.Taint{with(taint.DrainKey, "", corev1.TaintEffectNoExecute), taint.Drain()}, true,
		},
		{"named twice, added once", nil, []corev1.Taint{taint.Drain(), taint.Drain()}, []corev1.Taint{taint.Drain()}, true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			before := slices.Clone(tt.have)
			got, changed := taint.With(tt.have, tt.add...)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.changed, changed)
			require.Equal(t, before, tt.have, "the input is left alone")
		})
	}
}

func TestWithout(t *testing.T) {
	for _, tt := range []struct {
		reason  string
		have    []corev1.Taint
		remove  []corev1.Taint
		want    []corev1.Taint
		changed bool
	}{
		{"nothing to take off nothing", nil, []corev1.Taint{taint.Drain()}, nil, false},
		{"the last taint of a node", []corev1.Taint{taint.Drain()}, []corev1.Taint{taint.Drain()}, []corev1.Taint{}, true},
		{
			"what stays keeps value, time and place", []corev1.Taint{gpu, taint.Drain(), zone, taint.Unschedulable()},
			[]corev1.Taint{taint.Drain(), taint.Unschedulable()}, []corev1.Taint{gpu, zone}, true,
		},
		{
			"another value is somebody else's", []corev1.Taint{with(taint.DrainKey, "x", corev1.TaintEffectNoSchedule)}, []corev1.Taint{taint.Drain()},
			[]corev1.Taint{with(taint.DrainKey, "x", corev1.TaintEffectNoSchedule)}, false,
		},
		{
			"another effect is another taint", []corev1.Taint{with(taint.DrainKey, "", corev1.TaintEffectNoExecute)}, []corev1.Taint{taint.Drain()},
			[]corev1.Taint{with(taint.DrainKey, "", corev1.TaintEffectNoExecute)}, false,
		},
		{
			"when it was added does not matter", []corev1.Taint{{Key: taint.DrainKey, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &added}},
			[]corev1.Taint{taint.Drain()}, []corev1.Taint{}, true,
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			before := slices.Clone(tt.have)
			got, changed := taint.Without(tt.have, tt.remove...)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.changed, changed)
			require.Equal(t, before, tt.have, "the input is left alone")
		})
	}
}

func TestHas(t *testing.T) {
	have := []corev1.Taint{with(taint.DrainKey, "x", corev1.TaintEffectNoSchedule)}
	require.True(t, taint.Has(have, taint.Drain()), "whatever the value")
	require.False(t, taint.Has(have, taint.Unschedulable()))
	require.False(t, taint.Has(nil, taint.Drain()))
}

func Example() {
	gpu := corev1.Taint{Key: "gpu", Value: "a100", Effect: corev1.TaintEffectNoSchedule}
	held, changed := taint.With([]corev1.Taint{gpu}, taint.Drain(), taint.Unschedulable())
	for _, t := range held {
		fmt.Println(t.ToString())
	}
	fmt.Println("changed:", changed)
	back, _ := taint.Without(held, taint.Drain(), taint.Unschedulable())
	fmt.Println("left:", len(back))
	// Output:
	// gpu=a100:NoSchedule
	// medik8s.io/drain:NoSchedule
	// node.kubernetes.io/unschedulable:NoSchedule
	// changed: true
	// left: 1
}
