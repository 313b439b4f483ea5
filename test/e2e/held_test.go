// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

func withoutTaint(key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(tt corev1.Taint) bool { return tt.Key == key })
	}
}

func uncordon(n *corev1.Node)     { n.Spec.Unschedulable = false }
func withoutLabel(n *corev1.Node) { delete(n.Labels, excludeLabel) }
func withLabel(v string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[excludeLabel] = v }
}

// messages returns the messages of the events of one reason about an object.
func (e *env) messages(t *testing.T, kind, name, reason string) []string {
	t.Helper()
	var out []string
	for _, ev := range e.eventsOf(t, kind, name) {
		if ev.Reason == reason {
			out = append(out, ev.Message)
		}
	}
	return out
}

func TestAForeignChangeIsPutBack(t *testing.T) {
	t.Parallel()
	e := shared
	for _, row := range []struct {
		reason string
		edit   func(*corev1.Node)
		marks  string
	}{
		{"uncordoned", uncordon, "spec.unschedulable"},
		{"drain taint removed", withoutTaint(drainKey), "medik8s.io/drain"},
		{"label removed", withoutLabel, excludeLabel},
		{"label changed", withLabel("false"), excludeLabel},
		{"everything removed", func(n *corev1.Node) { withoutLabel(n); withoutTaint(drainKey)(n); uncordon(n) }, excludeLabel + ", medik8s.io/drain, spec.unschedulable"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			node, ns := e.node(t), e.namespace(t)
			e.deployment(t, ns, "web", node, 1)
			b := e.budget(t, ns, "web", 1, 1)
			nm := e.maintain(t, node)
			e.until(t, nm, "blocked", drainedReason(v1beta1.ReasonBlockedByBudget))
			film := e.filmMaintenance(t, nm.Name)

			e.editNode(t, node, row.edit)
			e.within(t, time.Second, "the node to be held again", func() bool { return held(e.getNode(t, node)) })
			words := "Put back on node " + node + " what somebody had taken off: " + row.marks
			e.eventually(t, "an event", func() bool { return len(e.messages(t, "NodeMaintenance", nm.Name, "NodeHeldAgain")) > 0 })
			require.Equal(t, []string{words}, e.messages(t, "NodeMaintenance", nm.Name, "NodeHeldAgain"))
			e.passed(t, nm)
			require.Equal(t, []v1beta1.MaintenancePhase{v1beta1.MaintenanceRunning}, phases(t, film))

			e.relax(t, b)
			e.succeed(t, nm)
			e.end(t, nm)
			now := e.getNode(t, node)
			require.False(t, now.Spec.Unschedulable)
			require.False(t, hasDrainTaint(now))
			require.NotContains(t, now.Annotations, recordAnnotation)
		})
	}
}

func TestAHeldNodeStaysSucceeded(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	film := e.filmMaintenance(t, nm.Name)

	e.editNode(t, node, uncordon)

	e.within(t, time.Second, "the node to be held again", func() bool { return held(e.getNode(t, node)) })
	e.passed(t, nm)
	require.Equal(t, []v1beta1.MaintenancePhase{v1beta1.MaintenanceSucceeded}, phases(t, film))
	e.end(t, nm)
	require.False(t, e.getNode(t, node).Spec.Unschedulable)
}

// Somebody who takes a mark off again and again gets it back at once the first time, then once in 5 s,
// and one event.
func TestMarksArePutBackAtAPace(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	film := e.filmNode(t, node)

	var at []time.Time
	for range 3 {
		e.editNode(t, node, uncordon)
		e.within(t, 5*time.Second, "the node to be held again", func() bool { return held(e.getNode(t, node)) })
		at = append(at, time.Now())
	}

	for i := range at[1:] {
		require.Greater(t, at[i+1].Sub(at[i]), 4*time.Second, "at most once in 5 s")
	}
	e.passed(t, nm)
	require.Equal(t, 1, e.events(t, "NodeMaintenance", nm.Name)["NodeHeldAgain"])
	cordons := 0
	states := film.all(t)
	for i := range states[1:] {
		if states[i+1].Spec.Unschedulable && !states[i].Spec.Unschedulable {
			cordons++
		}
	}
	require.Equal(t, 3, cordons)
}

func TestAnUnfinishedDrainDoesNotSucceedWhileAMarkIsMissing(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.deployment(t, ns, "web", node, 1)
	b := e.budget(t, ns, "web", 1, 1)
	nm := e.maintain(t, node)
	e.until(t, nm, "blocked", drainedReason(v1beta1.ReasonBlockedByBudget))
	e.editNode(t, node, withoutLabel)
	e.within(t, time.Second, "the node to be held again", func() bool { return held(e.getNode(t, node)) })
	e.editNode(t, node, withoutLabel) // put back in 5 s, not at once

	e.relax(t, b)

	e.eventually(t, "the pod to leave", func() bool { return e.read(t, nm).Status.DrainProgress == 100 })
	require.Equal(t, v1beta1.MaintenanceRunning, e.read(t, nm).Status.Phase)
	e.eventually(t, "Succeeded", func() bool {
		node := e.getNode(t, node) // as it was before the object was read
		phase := e.read(t, nm).Status.Phase
		require.False(t, phase == v1beta1.MaintenanceSucceeded && !held(node) && !held(e.getNode(t, node.Name)), "Succeeded without a mark")
		return phase == v1beta1.MaintenanceSucceeded
	})
	require.True(t, held(e.getNode(t, node)))
}

// kube-controller-manager adds and removes its taint by spec.unschedulable: that it is off is no act of
// anybody's.
func TestTheTaintOfACordonAloneIsNotHeld(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	begin := time.Now()

	e.editNode(t, node, withoutTaint(corev1.TaintNodeUnschedulable))
	e.eventually(t, "kube-controller-manager to put it back", func() bool { return len(taints(e.getNode(t, node))) == 2 })
	e.passed(t, nm)

	require.Zero(t, e.nodeWrites(t, node, begin))
	require.Zero(t, e.events(t, "NodeMaintenance", nm.Name)["NodeHeldAgain"])
}

// An admin who had cordoned the node, and uncordons it while we hold it, has let go of his cordon.
func TestACordonThatItsAdminTakesBackIsOursFromThen(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	before := e.getNode(t, node)
	e.cordon(t, node)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	require.Contains(t, e.getNode(t, node).Annotations[recordAnnotation], `"unschedulable":true`)

	_, err := e.Kubectl(t.Context(), nil, "uncordon", node)
	require.NoError(t, err)
	e.within(t, time.Second, "the node to be held again", func() bool { return held(e.getNode(t, node)) })
	require.Contains(t, e.getNode(t, node).Annotations[recordAnnotation], `"unschedulable":false`)
	e.end(t, nm)

	e.requireGivenBack(t, before)
	require.Equal(t, 1, e.events(t, "Node", node)["UncordonNode"])
}

func TestADrainTaintThatItsOwnerTakesBackIsOursFromThen(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	before := e.getNode(t, node)
	e.editNode(t, node, func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: drainKey, Value: "x", Effect: corev1.TaintEffectNoSchedule})
	})
	nm := e.maintain(t, node)
	e.succeed(t, nm)

	e.editNode(t, node, withoutTaint(drainKey))
	e.within(t, time.Second, "the node to be held again", func() bool { return held(e.getNode(t, node)) })
	require.Contains(t, taints(e.getNode(t, node)), "medik8s.io/drain:NoSchedule")
	e.end(t, nm)

	e.requireGivenBack(t, before)
}
