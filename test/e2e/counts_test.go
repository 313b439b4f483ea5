// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// What a drain costs in requests, so that it cannot creep. It does not run beside other tests: on a machine that
// is busy a drain takes longer, and a longer one has more to tell.
func TestRequestsOfADrain(t *testing.T) {
	for _, row := range []struct {
		reason         string
		nodes, perNode int
		limit          func(pods, nodes int) int
	}{
		{"20 nodes of 10 pods at once", 20, 10, func(pods, nodes int) int { return pods + 15*nodes }},
		{"one node of 300 pods", 1, 300, func(pods, _ int) int { return pods * 11 / 10 }},
	} {
		t.Run(row.reason, func(t *testing.T) {
			e := own(t, deploy.Options{Edit: func(u *unstructured.Unstructured) bool { return u.GetKind() != "ValidatingWebhookConfiguration" }})
			nodes := e.crowd(t, row.nodes, row.perNode)
			e.start(t, deploy.RunOptions{Flags: []string{"--enable-webhooks=false"}})
			e.eventually(t, "the operator to watch its objects", func() bool {
				return slices.ContainsFunc(e.asked(t, time.Time{}), func(ev cluster.AuditEvent) bool {
					return ev.Verb == "watch" && ev.Resource == "nodemaintenances"
				})
			})

			began := time.Now()
			var objects []*v1beta1.NodeMaintenance
			for _, node := range nodes {
				objects = append(objects, e.maintain(t, node))
			}
			for _, nm := range objects {
				e.succeed(t, nm)
			}
			require.NoError(t, e.operator.Stop(quickEnd)) // so that its last request is logged too

			cost, limit := e.asked(t, began), row.limit(row.nodes*row.perNode, row.nodes)
			t.Logf("%d requests, of at most %d:%s", len(cost), limit, byKind(cost))
			require.LessOrEqual(t, len(cost), limit, "requests of the operator:%s", byKind(cost))
		})
	}
}

// asked returns the requests of the operator since then.
func (e *env) asked(t *testing.T, since time.Time) []cluster.AuditEvent {
	t.Helper()
	events, err := e.Cluster.ReadAudit(cluster.AuditFilter{User: deploy.User, Since: since})
	require.NoError(t, err)
	return events
}

// byKind lists how many requests there are of each kind, the most frequent first.
func byKind(events []cluster.AuditEvent) string {
	count := map[string]int{}
	for _, ev := range events {
		what := ev.Resource
		if ev.Subresource != "" {
			what += "/" + ev.Subresource
		}
		count[fmt.Sprintf("%s %s %d", ev.Verb, what, ev.Code)]++
	}
	kinds := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	var out strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&out, "\n%5d %s", count[k], k)
	}
	return out.String()
}

// crowd makes nodes with as many pods each, of ten Deployments with a budget each that lets half of their pods go,
// and five DaemonSets; a pod takes a second to go. Where they can go comes up last. It returns the crowded nodes.
func (e *env) crowd(t *testing.T, nodes, perNode int) []string {
	t.Helper()
	const apps = 10
	room := cluster.NodeOptions{Prefix: "drained-", Pods: 500}
	names, err := e.Cluster.AddNodes(t.Context(), nodes, room)
	require.NoError(t, err)
	ns := e.namespace(t)
	for i := range 5 {
		name := fmt.Sprintf("agent-%d", i)
		ds := &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			Spec:       appsv1.DaemonSetSpec{Selector: selecting(name), Template: slowToGo(name)},
		}
		ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		require.NoError(t, e.Create(t.Context(), ds))
	}
	replicas := int32(nodes * perNode / apps)
	for i := range apps {
		e.spread(t, ns, fmt.Sprintf("app-%d", i), replicas)
	}
	var budgets policyv1.PodDisruptionBudgetList
	e.eventually(t, "every budget to have counted its pods", func() bool {
		require.NoError(t, e.List(t.Context(), &budgets, client.InNamespace(ns)))
		return !slices.ContainsFunc(budgets.Items, func(b policyv1.PodDisruptionBudget) bool {
			return b.Status.CurrentHealthy != replicas || b.Status.ExpectedPods != replicas
		})
	})
	e.eventually(t, "every DaemonSet to be ready", func() bool {
		var sets appsv1.DaemonSetList
		require.NoError(t, e.List(t.Context(), &sets, client.InNamespace(ns)))
		return !slices.ContainsFunc(sets.Items, func(ds appsv1.DaemonSet) bool { return int(ds.Status.NumberReady) != nodes })
	})
	room.Prefix = "spare-"
	_, err = e.Cluster.AddNodes(t.Context(), max(2, nodes/2), room)
	require.NoError(t, err)
	return names
}

// spread makes a Deployment whose pods are even over the nodes, and a budget that lets half of them go.
func (e *env) spread(t *testing.T, namespace, name string, replicas int32) {
	t.Helper()
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selecting(name), Template: slowToGo(name)},
	}
	d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: d.Spec.Selector, NodeTaintsPolicy: ptr.To(corev1.NodeInclusionPolicyHonor),
	}}
	require.NoError(t, e.Create(t.Context(), d))
	require.NoError(t, e.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromString("50%")), Selector: selecting(name)},
	}))
}

func selecting(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func slowToGo(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selecting(app).MatchLabels, Annotations: map[string]string{cluster.GoneAfterAnnotation: "1s"}},
		Spec:       podSpec(),
	}
}
