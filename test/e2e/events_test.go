// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// eventsOf returns the events about an object, in the order of their names.
func (e *env) eventsOf(t *testing.T, kind, name string) []corev1.Event {
	t.Helper()
	var all corev1.EventList
	require.NoError(t, e.List(t.Context(), &all, client.MatchingFields{"involvedObject.kind": kind, "involvedObject.name": name}))
	return all.Items
}

func TestEachStepIsTold(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.pod(t, ns, "lone", node)
	n := e.getNode(t, node)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	e.passed(t, nm)
	e.end(t, nm)

	onObject := corev1.ObjectReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "NodeMaintenance", Name: nm.Name, UID: nm.UID}
	onNode := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: n.UID}
	events := append(e.eventsOf(t, "NodeMaintenance", nm.Name), e.eventsOf(t, "Node", node)...)
	var seen []string
	for _, row := range []struct {
		reason, message string
		on              corev1.ObjectReference
	}{
		{"BeginMaintenance", "Begin a node maintenance", onObject},
		{"SucceedMaintenance", "Node maintenance was succeeded", onObject},
		{"UncordonNode", "Uncordon a node", onNode},
		{"RemovedMaintenance", "Removed a node maintenance", onObject},
	} {
		for _, ev := range events {
			if ev.Source.Component != "NodeMaintenance" || ev.Reason != row.reason {
				continue
			}
			seen = append(seen, ev.Reason)
			require.Equal(t, row.message, ev.Message)
			require.Equal(t, corev1.EventTypeNormal, ev.Type)
			require.Equal(t, row.on, ev.InvolvedObject)
			require.Equal(t, "default", ev.Namespace)
			require.Equal(t, int32(1), ev.Count)
			require.Contains(t, ev.Name, string(nm.UID), "its name is made from the object's UID")
			require.False(t, ev.FirstTimestamp.IsZero() || ev.LastTimestamp.IsZero())
		}
	}
	require.Equal(t, []string{"BeginMaintenance", "SucceedMaintenance", "UncordonNode", "RemovedMaintenance"}, seen, "each exactly once")
	require.Equal(t, map[string]int{"BeginMaintenance": 1, "SucceedMaintenance": 1, "RemovedMaintenance": 1}, e.events(t, "NodeMaintenance", nm.Name), "and nothing else")
}

// A second maintenance of a node is another object, with events of its own, even under the same name.
func TestASecondMaintenanceIsToldAnew(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	for range 2 {
		nm := e.maintain(t, node)
		e.succeed(t, nm)
		e.end(t, nm)
	}
	require.Equal(t, map[string]int{"BeginMaintenance": 2, "SucceedMaintenance": 2, "RemovedMaintenance": 2}, e.events(t, "NodeMaintenance", node))
	require.Equal(t, 2, e.events(t, "Node", node)["UncordonNode"])
}
