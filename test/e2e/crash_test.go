// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// The operator is killed at every stage of a maintenance and ends where it would have ended without that,
// having told each step once.
func TestKilledAtAnyTimeItCarriesOn(t *testing.T) {
	t.Parallel()
	e := own(t, deploy.Options{})
	e.start(t, deploy.RunOptions{})
	restart := func() {
		e.operator.Kill()
		require.NoError(t, e.run(t.Context(), deploy.RunOptions{}))
	}
	node, ns := e.node(t), e.namespace(t)
	for i := range 6 {
		e.pod(t, ns, fmt.Sprintf("p-%d", i), node, annotated(cluster.GoneAfterAnnotation, fmt.Sprintf("%dms", 300*i)))
	}
	e.pod(t, ns, "web-0", node, labelled(map[string]string{"app": "web"}))
	b := e.budget(t, ns, "web", 1, 1)
	before := e.getNode(t, node)
	nm := e.maintain(t, node)
	e.eventually(t, "the record", func() bool { return len(e.getNode(t, node).Annotations) > len(before.Annotations) })
	restart() // between record and drain, most likely
	e.eventually(t, "the first pod to go", func() bool { return len(e.podsOn(t, node)) < 7 })
	restart()
	e.until(t, nm, "blocked", onlyPending(ns+"/web-0"))
	restart()
	e.relax(t, b)
	done := e.succeed(t, nm)
	require.Equal(t, 7, done.Status.EvictionPods, "counted once, when it began")
	restart()
	require.NoError(t, e.Delete(t.Context(), nm))
	e.operator.Kill()
	require.NoError(t, e.run(t.Context(), deploy.RunOptions{}))
	e.gone(t, nm)

	after := e.getNode(t, node)
	require.Equal(t, before.Spec, after.Spec)
	require.Equal(t, before.Labels, after.Labels)
	require.Equal(t, before.Annotations, after.Annotations)
	require.Nil(t, e.lease(t, node))
	events := e.events(t, "NodeMaintenance", nm.Name)
	for _, reason := range []string{"BeginMaintenance", "SucceedMaintenance", "RemovedMaintenance"} {
		require.Equal(t, 1, events[reason], reason)
	}
	require.Equal(t, 1, e.events(t, "Node", node)["UncordonNode"])
	for i := range 6 {
		require.LessOrEqual(t, e.accepted(t, ns, fmt.Sprintf("p-%d", i)), 1, "one accepted eviction a pod")
	}
}

// accepted returns how many evictions of the pod the API server has accepted.
func (e *env) accepted(t *testing.T, namespace, pod string) int {
	t.Helper()
	n := 0
	for _, ev := range e.posted(t) {
		if ev.Namespace == namespace && ev.Name == pod && ev.Code == 201 {
			n++
		}
	}
	return n
}
