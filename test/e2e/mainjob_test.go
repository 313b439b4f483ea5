// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

func TestMainJob(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.deployment(t, ns, "web", node, 3)
	e.pod(t, ns, "lone", node)
	before := e.getNode(t, node)

	nm := e.maintain(t, node)
	done := e.succeed(t, nm)

	require.Equal(t, 100, done.Status.DrainProgress)
	require.Equal(t, 4, done.Status.EvictionPods)
	require.Equal(t, 4, done.Status.TotalPods)
	require.Empty(t, done.Status.LastError)
	require.Empty(t, done.Status.PendingPods)
	require.Contains(t, done.Finalizers, v1beta1.Finalizer)
	require.True(t, meta.IsStatusConditionTrue(done.Status.Conditions, v1beta1.ConditionReady))
	require.Len(t, done.OwnerReferences, 1)
	require.Equal(t, before.UID, done.OwnerReferences[0].UID)
	var now *corev1.Node
	e.eventually(t, "kube-controller-manager's taint", func() bool {
		now = e.getNode(t, node)
		return len(now.Spec.Taints) == 2
	})
	require.True(t, now.Spec.Unschedulable)
	require.Equal(t, "true", now.Labels["remediation.medik8s.io/exclude-from-remediation"])
	require.ElementsMatch(t, []string{"medik8s.io/drain:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"}, taints(now))
	require.NotNil(t, e.lease(t, node))

	e.end(t, nm)

	e.requireGivenBack(t, before)
	require.Nil(t, e.lease(t, node))
	require.Equal(t, map[string]int{"BeginMaintenance": 1, "SucceedMaintenance": 1, "RemovedMaintenance": 1}, e.events(t, "NodeMaintenance", nm.Name))
	require.Equal(t, 1, e.events(t, "Node", node)["UncordonNode"])
}

// taints returns the taints of a node as key=value:effect.
func taints(n *corev1.Node) []string {
	var out []string
	for _, tt := range n.Spec.Taints {
		out = append(out, tt.ToString())
	}
	return out
}
