// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// openShift makes a cluster pass for OpenShift: it is told by its API group.
const openShift = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterversions.config.openshift.io
  annotations: {api-approved.kubernetes.io: unapproved}
spec:
  group: config.openshift.io
  names: {kind: ClusterVersion, listKind: ClusterVersionList, plural: clusterversions, singular: clusterversion}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

func TestTheQuorumOfEtcdIsNotBroken(t *testing.T) {
	t.Parallel()
	e := own(t, deploy.Options{})
	_, err := e.Kubectl(t.Context(), strings.NewReader(openShift), "apply", "-f", "-")
	require.NoError(t, err)
	_, err = e.Kubectl(t.Context(), nil, "wait", "--for=condition=Established", "--timeout=30s", "crd/clusterversions.config.openshift.io")
	require.NoError(t, err)
	e.start(t, deploy.RunOptions{})
	require.NoError(t, e.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-etcd"}}))
	e.eventually(t, "the namespace's service account", func() bool {
		return e.exists(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "default"}})
	})
	for name, label := range map[string]string{"old-way": "master", "new-way": "control-plane", "third": "control-plane", "worker": "worker"} {
		require.NoError(t, e.Cluster.AddNode(t.Context(), name, cluster.NodeOptions{Labels: map[string]string{"node-role.kubernetes.io/" + label: ""}}))
	}
	e.eventually(t, "the webhook to be believed", func() bool { return e.admits(t, "worker") })
	allowed := func(t *testing.T, node string) { require.NoError(t, e.dryCreate(t, maintenanceOf("asked", node))) }
	refused := func(t *testing.T, node string) {
		require.ErrorContains(t, e.dryCreate(t, maintenanceOf("asked", node)),
			"can not put master/control-plane node into maintenance at this moment, disrupting node "+node+" will violate etcd quorum")
	}
	var asked []string // what the operator read of etcd's namespace
	reads := func() []string {
		events, err := e.Cluster.ReadAudit(cluster.AuditFilter{User: deploy.User})
		require.NoError(t, err)
		asked = nil
		for _, ev := range events {
			if ev.Namespace == "openshift-etcd" && ev.Verb == "list" {
				asked = append(asked, ev.Resource)
			}
		}
		return asked
	}

	require.Empty(t, reads())
	t.Run("a worker is none of its business", func(t *testing.T) {
		allowed(t, "worker")
		refused(t, "new-way")
		e.eventually(t, "the question to be logged", func() bool { return len(reads()) > 0 })
		require.ElementsMatch(t, []string{"poddisruptionbudgets", "pods"}, asked, "for one node of the control plane, and no worker")
	})

	t.Run("no budget", func(t *testing.T) {
		refused(t, "old-way")
		refused(t, "new-way")
	})

	guard := func(t *testing.T, node string) *corev1.Pod {
		return e.pod(t, "openshift-etcd", "etcd-guard-"+node, node, labelled(map[string]string{"app": "guard"}))
	}
	guards := map[string]*corev1.Pod{}
	for _, node := range []string{"old-way", "new-way", "third"} {
		guards[node] = guard(t, node)
	}
	e.pod(t, "openshift-etcd", "etcd-new-way", "new-way", labelled(map[string]string{"app": "etcd"}))
	b := e.budget(t, "openshift-etcd", "guard", 2, 3)

	t.Run("a disruption is left", func(t *testing.T) {
		require.EqualValues(t, 1, b.Status.DisruptionsAllowed)
		allowed(t, "old-way")
		allowed(t, "new-way")
	})

	t.Run("two budgets are one too many", func(t *testing.T) {
		second := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "another"}}
		require.NoError(t, e.Create(t.Context(), second))
		refused(t, "new-way")
		require.NoError(t, e.Delete(t.Context(), second))
		allowed(t, "new-way")
	})

	counted := func(t *testing.T, healthy int) {
		e.eventually(t, "the guards to be counted", func() bool {
			return e.Get(t.Context(), client.ObjectKeyFromObject(b), b) == nil && int(b.Status.CurrentHealthy) == healthy
		})
	}

	t.Run("one guard is down already", func(t *testing.T) {
		p := guards["third"]
		require.NoError(t, e.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"nodemaint.test/ready":"false"}}}`))))
		counted(t, 2)
		refused(t, "old-way")
		refused(t, "new-way")
		allowed(t, "third")
		allowed(t, "worker")
	})

	t.Run("one guard is gone already", func(t *testing.T) {
		require.NoError(t, e.Delete(t.Context(), guards["third"]))
		e.gone(t, guards["third"])
		refused(t, "new-way")
		allowed(t, "third")
		guards["third"] = guard(t, "third")
		counted(t, 3)
		allowed(t, "new-way")
	})

	// The second of two nodes is refused as soon as the first has lost its guard.
	t.Run("one after the other", func(t *testing.T) {
		first := e.maintain(t, "old-way")
		e.succeed(t, first)
		counted(t, 2)
		refused(t, "new-way")
		require.Equal(t, []string{"etcd-guard-new-way", "etcd-new-way"}, e.podsOn(t, "new-way"))
		e.end(t, first)
		guards["old-way"] = guard(t, "old-way")
		counted(t, 3)
		allowed(t, "new-way")
	})

	t.Run("a node whose kubelet is silent counts as a member", func(t *testing.T) {
		now := metav1.NewTime(time.Now())
		p := guards["third"]
		e.eventually(t, "the condition to be written", func() bool {
			require.NoError(t, e.Get(t.Context(), client.ObjectKeyFromObject(p), p))
			for i := range p.Status.Conditions {
				if p.Status.Conditions[i].Type == corev1.PodReady {
					p.Status.Conditions[i].Status, p.Status.Conditions[i].LastTransitionTime = corev1.ConditionUnknown, now
				}
			}
			return e.Status().Update(t.Context(), p) == nil
		})
		counted(t, 2)
		refused(t, "third")
	})
}
