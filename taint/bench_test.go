// SPDX-License-Identifier: Apache-2.0

package taint_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/taint"
)

// many returns n taints, none of them ours.
func many(n int) []corev1.Taint {
	var out []corev1.Taint
	for i := range n {
		out = append(out, with(fmt.Sprintf("example.com/taint-%d", i), "x", corev1.TaintEffectNoSchedule))
	}
	return out
}

func BenchmarkWith(b *testing.B) {
	for _, n := range []int{3, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			have := many(n)
			b.ReportAllocs()
			for b.Loop() {
				if _, changed := taint.With(have, taint.Drain(), taint.Unschedulable()); !changed {
					b.Fatal("nothing was added")
				}
			}
		})
	}
}

func BenchmarkWithout(b *testing.B) {
	for _, n := range []int{3, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			have, _ := taint.With(many(n), taint.Drain(), taint.Unschedulable())
			b.ReportAllocs()
			for b.Loop() {
				if _, changed := taint.Without(have, taint.Drain(), taint.Unschedulable()); !changed {
					b.Fatal("nothing was taken off")
				}
			}
		})
	}
}
