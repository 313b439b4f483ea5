// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// settled is what is to be done about the record on a node.
type settled struct {
	record     Record
	write      bool // it is not what stands on the node
	count      bool // its pods are not counted yet
	unreadable bool // leave what is there: nothing better is known
}

// settle decides what the record on n is to be. The lease is ours; resumed says that it was ours before
// this pass asked for it.
func settle(n *corev1.Node, prior State, resumed bool, holder string) settled {
	found, err := parseRecord(n)
	switch {
	case found != nil && found.Holder == holder && unmarked(n):
		// Whoever took every mark off did not undo our work: what stands there now is what was before.
		return settled{record: newRecord(n, holder), write: true, count: true}
	case found != nil:
		r := *found
		r.Holder = holder
		return settled{record: r, write: found.Holder != holder}
	case prior.Record != nil && (resumed || allOurs(n)): // else another had the lease and gave the node back
		r := *prior.Record
		r.Holder = holder
		return settled{record: r, write: true}
	case err != nil && !unmarked(n):
		return settled{unreadable: true}
	case resumed && Unrecorded(n):
		return settled{record: adoptedRecord(n, holder), write: true, count: true}
	default:
		return settled{record: newRecord(n, holder), write: true, count: true}
	}
}

// allOurs says that n carries all our marks as we set them; one alone may be anybody's.
func allOurs(n *corev1.Node) bool {
	return len(missing(n)) == 0 && slices.ContainsFunc(n.Spec.Taints, isOurs)
}

// isOurs says whether t is the drain taint as we set it.
func isOurs(t corev1.Taint) bool { return t.MatchTaint(&drainTaint) && t.Value == "" }
