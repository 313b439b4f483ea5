// SPDX-License-Identifier: Apache-2.0

package taint

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// DrainKey is the key of the taint that marks a node as being drained.
const DrainKey = "medik8s.io/drain"

// Drain returns the taint that says a node is being drained: medik8s.io/drain:NoSchedule.
func Drain() corev1.Taint {
	return corev1.Taint{Key: DrainKey, Effect: corev1.TaintEffectNoSchedule}
}

// Unschedulable returns the taint of a cordoned node: node.kubernetes.io/unschedulable:NoSchedule.
func Unschedulable() corev1.Taint {
	return corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
}

// With returns taints with those of add that are missing, and whether that changed anything. A
// taint is missing if none of the same key and effect is there.
func With(taints []corev1.Taint, add ...corev1.Taint) ([]corev1.Taint, bool) {
	out := slices.Clone(taints)
	for _, t := range add {
		if !Has(out, t) {
			out = append(out, t)
		}
	}
	return out, len(out) != len(taints)
}

// Without returns taints less those that are equal in key, value and effect to one of remove, and
// whether that changed anything.
func Without(taints []corev1.Taint, remove ...corev1.Taint) ([]corev1.Taint, bool) {
	out := slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool {
		return slices.ContainsFunc(remove, func(r corev1.Taint) bool {
			return t.Key == r.Key && t.Value == r.Value && t.Effect == r.Effect
		})
	})
	return out, len(out) != len(taints)
}

// Has says whether a taint of the key and effect of t is in taints, whatever its value.
func Has(taints []corev1.Taint, t corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(o corev1.Taint) bool { return o.MatchTaint(&t) })
}
