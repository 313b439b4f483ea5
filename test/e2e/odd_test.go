// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// Objects as odd as the API server allows: 10,000 owners, a reason of 100 kB, 1,000 taints, the longest names. It has
// a cluster of its own because kube-controller-manager looks for each of those owners, again and again.
func TestOddObjects(t *testing.T) {
	t.Parallel()
	e := own(t, deploy.Options{})
	e.start(t, deploy.RunOptions{})
	ns, node, longest := e.namespace(t), strings.Repeat("n", 63), strings.Repeat("p", 253)
	require.NoError(t, e.Cluster.AddNode(t.Context(), node, cluster.NodeOptions{Labels: oldLabels()}))
	e.editNode(t, node, func(n *corev1.Node) {
		n.OwnerReferences = manyOwners()
		for i := range 1000 {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: fmt.Sprintf("example.com/%d", i), Value: fmt.Sprint(i), Effect: corev1.TaintEffectNoSchedule})
		}
	})
	before := e.getNode(t, node)
	e.pod(t, ns, longest, node, labelled(map[string]string{"app": "web"}))
	b := e.budget(t, ns, "web", 1, 1)
	e.pod(t, ns, "owned", node, func(p *corev1.Pod) { p.OwnerReferences = manyOwners() })
	reason := strings.Repeat("ж𝄞\u202e\n", 10_000)
	nm := &v1beta1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("m", 253), OwnerReferences: manyOwners()},
		Spec:       v1beta1.NodeMaintenanceSpec{NodeName: node, Reason: reason},
	}
	require.GreaterOrEqual(t, len(reason), 100_000)
	require.NoError(t, e.Create(t.Context(), nm))

	now := e.until(t, nm, "left with the blocked pod", onlyPending(ns+"/"+longest))
	require.Equal(t, ns+"/"+longest+": budget "+ns+"/web needs 1 healthy pods and has 1", now.Status.LastError)
	e.relax(t, b)
	now = e.succeed(t, nm)

	require.Equal(t, reason, now.Spec.Reason)
	require.Equal(t, manyOwners(), now.OwnerReferences[:10_000], "owners of another's")
	require.Len(t, now.OwnerReferences, 10_001)
	require.Equal(t, before.UID, now.OwnerReferences[10_000].UID)
	require.Equal(t, 1, e.evictions(t, ns, "owned"))
	e.end(t, nm)
	require.Equal(t, map[string]int{"BeginMaintenance": 1, "PodBlocked": 1, "SucceedMaintenance": 1, "RemovedMaintenance": 1}, e.events(t, "NodeMaintenance", nm.Name))
	e.requireGivenBack(t, before)
	require.Equal(t, manyOwners(), e.getNode(t, node).OwnerReferences)
}

// manyOwners are 10,000 owners of a kind that the cluster does not know, so that the garbage collector cannot say
// that they are gone.
func manyOwners() []metav1.OwnerReference {
	var out []metav1.OwnerReference
	for i := range 10_000 {
		out = append(out, metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Owner", Name: "o", UID: types.UID(fmt.Sprint(i))})
	}
	return out
}
