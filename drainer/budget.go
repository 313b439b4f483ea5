// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// selecting returns those of the budgets of the pod's namespace that select it, sorted by name. A
// selector that does not parse selects nothing, as for the API server.
func selecting(pod *corev1.Pod, all []*policyv1.PodDisruptionBudget) []*policyv1.PodDisruptionBudget {
	var out []*policyv1.PodDisruptionBudget
	for _, b := range all {
		s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && b.Namespace == pod.Namespace && s.Matches(labels.Set(pod.Labels)) {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b *policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// numbers returns what a report says of the budgets.
func numbers(budgets []*policyv1.PodDisruptionBudget) []Budget {
	var out []Budget
	for _, b := range budgets {
		out = append(out, Budget{
			Name: b.Name, Healthy: b.Status.CurrentHealthy, Desired: b.Status.DesiredHealthy, Allowed: b.Status.DisruptionsAllowed,
		})
	}
	return out
}

// setOf names a set of budgets: it changes when one comes or goes.
func setOf(budgets []*policyv1.PodDisruptionBudget) string {
	var ids []string
	for _, b := range budgets {
		ids = append(ids, string(b.UID))
	}
	return strings.Join(ids, ",")
}

// versionOf names the state of a set of budgets: it changes whenever one of them does. It is never empty.
func versionOf(budgets []*policyv1.PodDisruptionBudget) string {
	ids := []string{"budgets"}
	for _, b := range budgets {
		ids = append(ids, string(b.UID)+"@"+b.ResourceVersion)
	}
	return strings.Join(ids, ",")
}

// known are the budgets of some namespaces; of a namespace that is not in it nothing is known.
type known map[string][]*policyv1.PodDisruptionBudget

// of returns the budgets that select the pod; not ok if they are not known.
func (k known) of(pod *corev1.Pod) ([]*policyv1.PodDisruptionBudget, bool) {
	all, ok := k[pod.Namespace]
	return selecting(pod, all), ok
}

// use is how many evictions were posted under one state of a budget.
type use struct {
	version string
	posted  int32
}

// uses counts evictions for each budget, so that no more are posted before their time than it allows.
type uses map[types.UID]use

// charge counts an eviction of a pod that the budgets select; of several none is ever granted.
func (u uses) charge(budgets []*policyv1.PodDisruptionBudget) {
	if len(budgets) == 1 {
		b := budgets[0]
		u[b.UID] = use{b.ResourceVersion, u.posted(b) + 1}
	}
}

func (u uses) posted(b *policyv1.PodDisruptionBudget) int32 {
	if was := u[b.UID]; was.version == b.ResourceVersion {
		return was.posted
	}
	return 0
}

// allow says whether the budgets would let one more pod go now.
func (u uses) allow(budgets []*policyv1.PodDisruptionBudget) bool {
	switch len(budgets) {
	case 0:
		return true
	case 1:
		b := budgets[0]
		return b.Status.ObservedGeneration >= b.Generation && b.Status.DisruptionsAllowed > u.posted(b)
	default:
		return false
	}
}
