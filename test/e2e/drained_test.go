// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/cluster"
)

func drained(nm *v1beta1.NodeMaintenance) string {
	return meta.FindStatusCondition(nm.Status.Conditions, v1beta1.ConditionDrained).Message
}

func TestAPodThatTakesItsTimeIsTerminating(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.pod(t, ns, "quick", node)
	slow := e.pod(t, ns, "slow", node, annotated(cluster.GoneAfterAnnotation, "never"))
	nm := e.maintain(t, node)

	now := e.until(t, nm, "left with the slow pod, as Terminating", func(s v1beta1.NodeMaintenanceStatus) bool {
		return onlyPending(ns+"/slow")(s) && drainedReason(v1beta1.ReasonTerminating)(s)
	})

	require.Equal(t, "1 of 2 pods left", drained(now))
	require.Equal(t, 50, now.Status.DrainProgress)
	require.Empty(t, now.Status.LastError, "it only takes its time")
	require.NoError(t, e.Delete(t.Context(), slow, client.GracePeriodSeconds(0)))
	e.succeed(t, nm)
	require.Equal(t, 1, e.evictions(t, ns, "slow"))
}

// A node that is dead lets no pod go. The status says since when, and that does not change by itself.
func TestANodeThatIsNotReadyIsSaidToBe(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	stuck := e.pod(t, ns, "stuck", node, annotated(cluster.GoneAfterAnnotation, "never"))
	e.editNode(t, node, func(n *corev1.Node) { n.Annotations[cluster.ReadyAnnotation] = "false" })
	var ready corev1.NodeCondition
	e.eventually(t, "the node not to be ready", func() bool {
		for _, c := range e.getNode(t, node).Status.Conditions {
			if c.Type == corev1.NodeReady {
				ready = c
			}
		}
		return ready.Status == corev1.ConditionFalse
	})
	nm := e.maintain(t, node)

	now := e.until(t, nm, "waiting for a node", drainedReason(v1beta1.ReasonNodeNotReady))

	require.Equal(t, "1 of 1 pods left\nthe node is not ready since "+ready.LastTransitionTime.UTC().Format("15:04:05Z"), drained(now))
	later := e.passed(t, nm)
	require.Equal(t, drained(now), drained(later))

	e.editNode(t, node, func(n *corev1.Node) { delete(n.Annotations, cluster.ReadyAnnotation) })
	back := e.until(t, nm, "waiting for a pod only", drainedReason(v1beta1.ReasonTerminating))
	require.Equal(t, "1 of 1 pods left", drained(back))
	require.NoError(t, e.Delete(t.Context(), stuck, client.GracePeriodSeconds(0)))
	e.succeed(t, nm)
}

// Evictions are tried again and again; an object is written only when there is something new.
func TestABlockedDrainWritesNothingAboutItsRetries(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.pod(t, ns, "web-0", node, labelled(map[string]string{"app": "web"}))
	e.budget(t, ns, "web", 1, 1)
	nm := e.maintain(t, node)
	blocked := e.until(t, nm, "blocked", drainedReason(v1beta1.ReasonBlockedByBudget))
	since, events := time.Now(), e.events(t, "NodeMaintenance", nm.Name)
	posted := e.evictions(t, ns, "web-0")

	e.eventually(t, "two retries and a pass after them", func() bool { return e.evictions(t, ns, "web-0") >= posted+3 })

	require.Equal(t, blocked.ResourceVersion, e.read(t, nm).ResourceVersion)
	require.Zero(t, e.nodeWrites(t, node, since))
	require.Equal(t, events, e.events(t, "NodeMaintenance", nm.Name))
}
