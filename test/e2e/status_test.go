// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// filmRaw films an object as it stands in the API, with what a typed client would add or lose.
func (e *env) filmRaw(t *testing.T, name string) *film[*unstructured.Unstructured] {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("NodeMaintenanceList"))
	return filmed[*unstructured.Unstructured](t, e, list, name)
}

func TestTheStatusOfANodeWithoutPods(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	film := e.filmRaw(t, node)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	e.end(t, nm)

	done, before := film.first(t, "Succeeded", func(u *unstructured.Unstructured) bool {
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		return phase == "Succeeded"
	})
	status, _, err := unstructured.NestedMap(done.Object, "status")
	require.NoError(t, err)
	for _, count := range []string{"evictionPods", "totalPods", "errorOnLeaseCount"} {
		require.Equal(t, int64(0), status[count], count+" is written though it is 0")
	}
	require.Equal(t, int64(100), status["drainProgress"])
	require.Equal(t, int64(1), status["observedGeneration"])
	require.NotContains(t, status, "lastError")
	require.NotContains(t, status, "pendingPods")
	for _, u := range append(before, done) {
		status, _, err := unstructured.NestedMap(u.Object, "status")
		require.NoError(t, err)
		if at, ok := status["lastUpdate"]; ok {
			_, err := time.Parse(time.RFC3339, at.(string))
			require.NoError(t, err)
		} else {
			require.NotContains(t, status, "phase", "a status that was written says when")
		}
	}
}

func TestTheConditions(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.deployment(t, ns, "web", node, 2)
	b := e.budget(t, ns, "web", 2, 2)
	e.pod(t, ns, "lone", node)
	nm := e.maintain(t, node)

	blocked := e.until(t, nm, "blocked and the lone pod gone", func(s v1beta1.NodeMaintenanceStatus) bool {
		return drainedReason(v1beta1.ReasonBlockedByBudget)(s) && len(s.PendingPods) == 2
	})
	require.Equal(t, 3, blocked.Status.EvictionPods)
	require.Equal(t, 33, blocked.Status.DrainProgress)
	requireConditions(t, blocked, map[string]string{
		"Ready": "False Running", "LeaseHeld": "True Held", "Drained": "False BlockedByBudget",
	})
	require.Regexp(t, `^2 of 3 pods left\n`, meta.FindStatusCondition(blocked.Status.Conditions, "Drained").Message)

	e.relax(t, b)
	e.succeed(t, nm)
	done := e.passed(t, nm)
	requireConditions(t, done, map[string]string{"Ready": "True Succeeded", "LeaseHeld": "True Held", "Drained": "True Drained"})
	require.Equal(t, int64(2), done.Status.ObservedGeneration)
	require.Equal(t, "0 of 3 pods left", meta.FindStatusCondition(done.Status.Conditions, "Drained").Message)

	e.editLease(t, node, heldBy("another"))
	lost := e.until(t, nm, "without lease", leaseIs(v1beta1.ReasonLost))
	requireConditions(t, lost, map[string]string{"Ready": "False RunningAgain", "LeaseHeld": "False Lost", "Drained": "Unknown Unseen"})
	require.Nil(t, meta.FindStatusCondition(lost.Status.Conditions, "Stalled"))
	require.NoError(t, e.Delete(t.Context(), e.lease(t, node)))
	e.succeed(t, nm)
	require.Equal(t, 1, e.events(t, "NodeMaintenance", nm.Name)["SucceedMaintenance"], "that it is Succeeded again is no news")
}

// requireConditions checks that an object has just these conditions, given as "status reason", all of its
// present generation.
func requireConditions(t *testing.T, nm *v1beta1.NodeMaintenance, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, c := range nm.Status.Conditions {
		got[c.Type] = string(c.Status) + " " + c.Reason
		require.Equal(t, nm.Generation, c.ObservedGeneration, c.Type)
		require.NotEqual(t, metav1.Time{}, c.LastTransitionTime)
	}
	require.Equal(t, want, got)
}
