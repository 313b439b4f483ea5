// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// Pods that are bound to the node past the scheduler leave too, during a drain and after it.
func TestPodsThatArriveLateLeaveToo(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.pod(t, ns, "first", node, labelled(map[string]string{"app": "first"}))
	b := e.budget(t, ns, "first", 1, 1)
	nm := e.maintain(t, node)
	e.until(t, nm, "blocked", drainedReason(v1beta1.ReasonBlockedByBudget))
	seen := e.watchStatus(t, nm)

	e.pod(t, ns, "late-1", node)
	e.pod(t, ns, "late-2", node)
	e.until(t, nm, "rid of the late pods", onlyPending(ns+"/first"))
	e.relax(t, b)
	e.succeed(t, nm)
	e.pod(t, ns, "late-3", node, annotated(cluster.GoneAfterAnnotation, "2s"))
	e.until(t, nm, "Running again", inPhase(v1beta1.MaintenanceRunning))
	e.succeed(t, nm)

	require.Empty(t, e.podsOn(t, node))
	require.Equal(t, 1, e.events(t, "NodeMaintenance", nm.Name)["SucceedMaintenance"], "it succeeds once")
	for _, s := range seen() {
		require.True(t, s.DrainProgress >= 0 && s.DrainProgress <= 100, "progress %d", s.DrainProgress)
		if s.Phase == v1beta1.MaintenanceSucceeded || s.DrainProgress == 100 {
			require.Empty(t, s.PendingPodsRefs, "done with a pod left")
		}
	}
}

// watchStatus collects every status of the object from now on; the function returns those until it is called.
func (e *env) watchStatus(t *testing.T, nm *v1beta1.NodeMaintenance) func() []v1beta1.NodeMaintenanceStatus {
	t.Helper()
	c, err := client.NewWithWatch(e.Cluster.RESTConfig(), client.Options{Scheme: deploy.Scheme()})
	require.NoError(t, err)
	w, err := c.Watch(t.Context(), &v1beta1.NodeMaintenanceList{}, client.MatchingFields{"metadata.name": nm.Name})
	require.NoError(t, err)
	done := make(chan []v1beta1.NodeMaintenanceStatus)
	go func() {
		var all []v1beta1.NodeMaintenanceStatus
		for ev := range w.ResultChan() {
			if now, ok := ev.Object.(*v1beta1.NodeMaintenance); ok {
				all = append(all, now.Status)
			}
		}
		done <- all
	}()
	return func() []v1beta1.NodeMaintenanceStatus {
		w.Stop()
		return <-done
	}
}

// A ReplicaSet whose template names the node puts each evicted pod back on it at once.
func TestAnOwnerWhosePodsKeepComingIsNamedAndBraked(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	labels := map[string]string{"app": "stuck"}
	spec := podSpec()
	spec.NodeName = node
	replicas := int32(3)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "stuck"},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{cluster.GoneAfterAnnotation: "100ms"}}, Spec: spec,
		}},
	}
	require.NoError(t, e.Create(t.Context(), rs))
	e.eventually(t, "the pods to run", func() bool {
		return e.Get(t.Context(), client.ObjectKeyFromObject(rs), rs) == nil && rs.Status.ReadyReplicas == replicas
	})
	nm := e.maintain(t, node)

	now := e.until(t, nm, "braked, the owner named", func(s v1beta1.NodeMaintenanceStatus) bool {
		return conditionReason(s, v1beta1.ConditionDrained) == v1beta1.ReasonLatePods && drainedMessageHas(s, "ReplicaSet "+ns+"/stuck")
	})

	require.Equal(t, v1beta1.MaintenanceRunning, now.Status.Phase)
	count := func() int {
		n := 0
		for _, ev := range e.posted(t) {
			if ev.Namespace == ns {
				n++
			}
		}
		return n
	}
	posted := count()
	require.LessOrEqual(t, posted, 12, "no storm before the brake holds")
	require.Never(t, func() bool { return count() > posted }, 12*time.Second, time.Second, "more evictions within the braked minute")
	require.NoError(t, e.Delete(t.Context(), rs, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	e.succeed(t, nm)
	require.Equal(t, 1, e.events(t, "NodeMaintenance", nm.Name)["SucceedMaintenance"])
}

func drainedMessageHas(s v1beta1.NodeMaintenanceStatus, words string) bool {
	for _, c := range s.Conditions {
		if c.Type == v1beta1.ConditionDrained {
			return strings.Contains(c.Message, words)
		}
	}
	return false
}
