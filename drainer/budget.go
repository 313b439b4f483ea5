// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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

// known are the budgets of some namespaces; of a namespace that is not in it nothing is known.
type known map[string][]*policyv1.PodDisruptionBudget

// of returns the budgets that select the pod; not ok if they are not known.
func (k known) of(pod *corev1.Pod) ([]*policyv1.PodDisruptionBudget, bool) {
	all, ok := k[pod.Namespace]
	return selecting(pod, all), ok
}
