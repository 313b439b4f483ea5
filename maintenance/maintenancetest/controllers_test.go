// SPDX-License-Identifier: Apache-2.0

package maintenancetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestUnschedulableTaint(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{Controllers: []maintenancetest.Controller{maintenancetest.UnschedulableTaint}})
	c.Add(maintenancetest.Node("n1"))
	patch := func(body string) {
		_, err := c.Client().CoreV1().Nodes().Patch(t.Context(), "n1", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	patch(`{"spec":{"unschedulable":true}}`)
	require.Len(t, c.Node("n1").Spec.Taints, 1)
	require.Equal(t, corev1.TaintNodeUnschedulable, c.Node("n1").Spec.Taints[0].Key)
	patch(`{"spec":{"taints":null}}`)
	require.Len(t, c.Node("n1").Spec.Taints, 1, "put back")
	patch(`{"spec":{"unschedulable":null}}`)
	require.Empty(t, c.Node("n1").Spec.Taints)
	require.Len(t, c.Writes(), 3, "the controller's writes are not the client's")

	c.Disable(maintenancetest.UnschedulableTaint)
	patch(`{"spec":{"unschedulable":true}}`)
	require.Empty(t, c.Node("n1").Spec.Taints)
	c.Enable(maintenancetest.UnschedulableTaint)
	require.Len(t, c.Node("n1").Spec.Taints, 1)
}

func TestBudgetStatusByHand(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{})
	c.Add(maintenancetest.Pod("shop", "web-0", "n1", maintenancetest.Labels(web)))
	b := c.AddBudget("shop", "web", web, 1)
	require.Equal(t, int32(1), b.Status.CurrentHealthy)
	require.Equal(t, int32(1), b.Status.DesiredHealthy)
	require.Zero(t, b.Status.DisruptionsAllowed)
	c.Add(maintenancetest.Pod("shop", "web-1", "n1", maintenancetest.Labels(web)))
	require.Zero(t, c.Budget("shop", "web").Status.DisruptionsAllowed, "nobody computes it")
	was := c.ResourceVersion()
	c.SetDisruptionsAllowed("shop", "web", 1)
	b = c.Budget("shop", "web")
	require.Equal(t, int32(1), b.Status.DisruptionsAllowed)
	require.NotEqual(t, was, b.ResourceVersion)
}

func TestBudgetStatusFollowsThePods(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{Controllers: []maintenancetest.Controller{maintenancetest.BudgetStatus}})
	allowed := func() int { return int(c.Budget("shop", "web").Status.DisruptionsAllowed) }
	c.AddBudget("shop", "web", web, 1)
	require.Zero(t, allowed())
	c.Add(
		maintenancetest.Pod("shop", "a", "n1", maintenancetest.Labels(web)),
		maintenancetest.Pod("shop", "b", "n1", maintenancetest.Labels(web)),
		maintenancetest.Pod("shop", "other", "n1"),
	)
	require.Equal(t, 1, allowed())
	require.NoError(t, evict(t.Context(), c, "shop", "a", nil))
	require.Equal(t, 0, allowed())
	require.Equal(t, 429, status(evict(t.Context(), c, "shop", "b", nil)))
	c.Add(maintenancetest.Pod("shop", "a", "n2", maintenancetest.Labels(web)))
	require.Equal(t, 1, allowed())
	require.NoError(t, evict(t.Context(), c, "shop", "b", nil))
}

func TestBudgetArithmetic(t *testing.T) {
	n := func(v int) *intstr.IntOrString { return ptr(intstr.FromInt32(int32(v))) }
	pct := func(s string) *intstr.IntOrString { return ptr(intstr.FromString(s)) }
	for _, tt := range []struct {
		reason   string
		min, max *intstr.IntOrString
		pods     int
		want     policyv1.PodDisruptionBudgetStatus
	}{
		{"minAvailable counts the pods there are", n(2), nil, 2, policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, DesiredHealthy: 2, CurrentHealthy: 2}},
		{"maxUnavailable counts those there ought to be", nil, n(1), 3, policyv1.PodDisruptionBudgetStatus{ExpectedPods: 4, DesiredHealthy: 3, CurrentHealthy: 3}},
		{"a percentage is rounded up", pct("30%"), nil, 4, policyv1.PodDisruptionBudgetStatus{ExpectedPods: 4, DesiredHealthy: 2, CurrentHealthy: 4, DisruptionsAllowed: 2}},
		{"no pods, no disruption", n(0), nil, 0, policyv1.PodDisruptionBudgetStatus{}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			c := newCluster(t, maintenancetest.Options{})
			c.Add(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: appsv1.ReplicaSetSpec{Replicas: ptr(int32(4))}})
			for i := range tt.pods {
				c.Add(maintenancetest.Pod("shop", string(rune('a'+i)), "n1", maintenancetest.Labels(web), maintenancetest.OfReplicaSet("web")))
			}
			b := maintenancetest.Budget("shop", "web", web, 0)
			b.Spec.MinAvailable, b.Spec.MaxUnavailable = tt.min, tt.max
			c.Add(b)
			c.Enable(maintenancetest.BudgetStatus)
			got := c.Budget("shop", "web").Status
			got.Conditions, got.ObservedGeneration = nil, 0
			require.Equal(t, tt.want, got)
		})
	}
}
