// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/maintenance"
)

// Look is what a maintenance may change on a node, and what others put there.
type Look struct {
	Unschedulable bool
	// Taints in the form key=value:effect, sorted, without those of the cluster's own controllers.
	Taints []string
	Labels map[string]string
	// Annotations without those that the cluster writes by itself.
	Annotations map[string]string
}

// LookOf returns how a node looks.
func LookOf(n *corev1.Node) Look {
	l := Look{Unschedulable: n.Spec.Unschedulable, Labels: maps.Clone(n.Labels), Annotations: map[string]string{}}
	for _, t := range n.Spec.Taints {
		if !strings.HasPrefix(t.Key, clusterTaints) {
			l.Taints = append(l.Taints, t.ToString())
		}
	}
	slices.Sort(l.Taints)
	for k, v := range n.Annotations {
		if k != ttlAnnotation {
			l.Annotations[k] = v
		}
	}
	return l
}

const (
	// clusterTaints begin the keys of the taints that kube-controller-manager puts on a node and takes off,
	// a moment after their cause. TaintFollowsCordon sees to the one that is ours too.
	clusterTaints = "node.kubernetes.io/"
	// ttlAnnotation is kube-controller-manager's.
	ttlAnnotation = "node.alpha.kubernetes.io/ttl"
)

// Clone returns a copy that shares nothing.
func (l Look) Clone() Look {
	l.Taints, l.Labels, l.Annotations = slices.Clone(l.Taints), maps.Clone(l.Labels), maps.Clone(l.Annotations)
	return l
}

const ruleGivenBack = "given back"

// GivenBack holds that a node without a NodeMaintenance looks as it did before, and that no lease of ours claims it.
func GivenBack(s Snapshot, before map[string]Look) []Breach {
	r := rule{name: ruleGivenBack}
	maintained := s.maintained()
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if len(maintained[n.Name]) > 0 {
			continue
		}
		if want, ok := before[n.Name]; ok {
			if diff := cmp.Diff(want, LookOf(n)); diff != "" {
				r.broken(n.Name, "without a NodeMaintenance it does not look as before (-before +now):\n%s", diff)
			}
		}
		for _, l := range s.Leases {
			if ours(l) && claimed(l) == n.Name && ownedBy(l, n) {
				r.broken(n.Name, "lease %s/%s is still ours", l.Namespace, l.Name)
			}
		}
	}
	return r.out
}

// TaintFollowsCordon holds that the taint of unschedulable nodes is on those and on no other.
func TaintFollowsCordon(s Snapshot) []Breach {
	r := rule{name: "unschedulable taint"}
	for _, n := range s.Nodes {
		tainted := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
		if tainted != n.Spec.Unschedulable {
			r.broken(n.Name, "tainted %t, unschedulable %t", tainted, n.Spec.Unschedulable)
		}
	}
	return r.out
}

// ourHolder is who the operator is in a lease and in a record.
const ourHolder = maintenance.DefaultHolder
