// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

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

// setOf names a set of budgets: it changes when one comes, goes or is edited, not when its numbers change.
func setOf(budgets []*policyv1.PodDisruptionBudget) string {
	var ids []string
	for _, b := range budgets {
		ids = append(ids, fmt.Sprint(b.UID, "/", b.Generation))
	}
	return strings.Join(ids, ",")
}

// spares says whether the budget lets the pod go without counting it as a disruption: one that does not run, or is
// not ready where the budget's policy lets such pods go. Source: the API server's eviction handler.
func spares(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	switch {
	case slices.Contains([]corev1.PodPhase{corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed}, pod.Status.Phase):
		return true
	case slices.ContainsFunc(pod.Status.Conditions, isReady):
		return false
	case ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, policyv1.IfHealthyBudget) == policyv1.AlwaysAllow:
		return true
	default:
		return b.Status.DesiredHealthy > 0 && b.Status.CurrentHealthy >= b.Status.DesiredHealthy
	}
}

func isReady(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

// known are the budgets of some namespaces; of a namespace that is not in it nothing is known.
type known map[string][]selector

// selector is a budget with what it selects.
type selector struct {
	budget *policyv1.PodDisruptionBudget
	labels.Selector
}

// selectors returns the budgets with what they select, sorted by name. A selector that does not parse selects
// nothing, as for the API server.
func selectors(budgets []*policyv1.PodDisruptionBudget) []selector {
	out := make([]selector, 0, len(budgets))
	for _, b := range budgets {
		if s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil {
			out = append(out, selector{b, s})
		}
	}
	slices.SortFunc(out, func(a, b selector) int { return strings.Compare(a.budget.Name, b.budget.Name) })
	return out
}

// of returns the budgets that select the pod, sorted by name; not ok if they are not known.
func (k known) of(pod *corev1.Pod) (selecting []*policyv1.PodDisruptionBudget, ok bool) {
	all, ok := k[pod.Namespace]
	for _, s := range all {
		if s.Matches(labels.Set(pod.Labels)) {
			selecting = append(selecting, s.budget)
		}
	}
	return selecting, ok
}
