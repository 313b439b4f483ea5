// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/taint"
)

// Mark is one of the marks that a node carries while it is maintained.
type Mark string

// The marks. The taint node.kubernetes.io/unschedulable is put on too but is none of them:
// kube-controller-manager adds and removes it by spec.unschedulable.
const (
	MarkLabel  Mark = ExcludeLabel
	MarkTaint  Mark = taint.DrainKey
	MarkCordon Mark = "spec.unschedulable"
)

// missing returns the marks that n lacks.
func missing(n *corev1.Node) []Mark {
	var out []Mark
	if n.Labels[ExcludeLabel] != labelValue {
		out = append(out, MarkLabel)
	}
	if !taint.Has(n.Spec.Taints, drainTaint) {
		out = append(out, MarkTaint)
	}
	if !n.Spec.Unschedulable {
		out = append(out, MarkCordon)
	}
	return out
}

// unmarked says that n carries none of our marks.
func unmarked(n *corev1.Node) bool {
	_, labelled := n.Labels[ExcludeLabel]
	return !labelled && !taint.Has(n.Spec.Taints, drainTaint) && !n.Spec.Unschedulable
}

// reclaim returns r as it is once the missing marks are put back on n: what stands in their place now is
// what stood there before, because who had put them there has let go of them.
func (r Record) reclaim(n *corev1.Node, missing []Mark) Record {
	now := newRecord(n, r.Holder)
	for _, m := range missing {
		switch m {
		case MarkLabel:
			r.Label = now.Label
		case MarkTaint:
			r = r.disclaim(drainTaint)
		case MarkCordon:
			if r.Unschedulable { // the taint that came with that cordon was kube-controller-manager's
				r = r.disclaim(unschedulableTaint)
			}
			r.Unschedulable = false
		}
	}
	return r
}

// disclaim returns r without the taints of the key and effect of t.
func (r Record) disclaim(t corev1.Taint) Record {
	r.Taints = slices.DeleteFunc(slices.Clone(r.Taints), func(s string) bool { return isOf(s, t) })
	return r
}

// isOf says whether s, as key=value:effect, is of the key and effect of t.
func isOf(s string, t corev1.Taint) bool {
	key, effect, ok := cutTaint(s)
	return ok && key == t.Key && effect == t.Effect
}

// cutTaint takes key=value:effect, or key:effect, apart.
func cutTaint(s string) (key string, effect corev1.TaintEffect, ok bool) {
	rest, e, ok := strings.Cut(s, ":")
	key, _, _ = strings.Cut(rest, "=")
	return key, corev1.TaintEffect(e), ok && key != ""
}
