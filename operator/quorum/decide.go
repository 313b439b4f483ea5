// SPDX-License-Identifier: Apache-2.0

package quorum

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// The labels of control-plane nodes, the old one and the new one.
const (
	masterLabel       = "node-role.kubernetes.io/master"
	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
)

// ControlPlane says whether a node is labelled as one of the control plane, whatever the label's value.
func ControlPlane(node *corev1.Node) bool {
	_, master := node.Labels[masterLabel]
	_, controlPlane := node.Labels[controlPlaneLabel]
	return master || controlPlane
}

// Allowed decides whether a node can be disrupted, from the budgets in etcd's namespace and the pods of
// that namespace on that node. It is allowed when the one budget allows a disruption, or when the guard pod
// on the node is down already, so that a disruption takes no further member away.
func Allowed(budgets []policyv1.PodDisruptionBudget, onNode []corev1.Pod) (bool, error) {
	if len(budgets) != 1 {
		return false, nil
	}
	budget := budgets[0]
	if budget.Status.DisruptionsAllowed > 0 {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return false, fmt.Errorf("reading the selector of budget %s/%s: %w", budget.Namespace, budget.Name, err)
	}
	for i := range onNode {
		if selector.Matches(labels.Set(onNode[i].Labels)) && !down(&onNode[i]) {
			return false, nil
		}
	}
	return true, nil
}

// down says whether a pod is known not to be ready. Unknown, or not said yet, is no such knowledge: its
// kubelet may only be cut off while the member of etcd next to it still votes.
func down(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionFalse
		}
	}
	return false
}
