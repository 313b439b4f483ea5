// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

const nodeNameChanged = "updating spec.NodeName isn't allowed"

func maintenanceOf(name, node string) *v1beta1.NodeMaintenance {
	return &v1beta1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.NodeMaintenanceSpec{NodeName: node}}
}

func TestTheWebhookRefusesANodeThatDoesNotExist(t *testing.T) {
	t.Parallel()
	err := shared.Create(t.Context(), maintenanceOf(short(t), "no-such-node"))
	require.ErrorContains(t, err, "invalid nodeName, no node with name no-such-node found")
}

func TestTheWebhookRefusesASecondObjectForANode(t *testing.T) {
	t.Parallel()
	node := shared.node(t)
	shared.maintain(t, node)
	err := shared.Create(t.Context(), maintenanceOf(node+"-again", node))
	require.ErrorContains(t, err, "invalid nodeName, a NodeMaintenance for node "+node+" already exists")
}

func TestTheAPIServerRefusesWhatNoNodeIsCalled(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ reason, node, words string }{
		{"empty", "", "spec.nodeName"},
		{"254 characters", strings.Repeat("n", 254), "spec.nodeName: Too long: may not be more than 253"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			require.ErrorContains(t, shared.Create(t.Context(), maintenanceOf(short(t), row.node)), row.words)
		})
	}
}

func TestAnObjectWithoutASpecIsRefused(t *testing.T) {
	t.Parallel()
	_, err := shared.Kubectl(t.Context(), strings.NewReader("apiVersion: nodemaintenance.medik8s.io/v1beta1\nkind: NodeMaintenance\nmetadata: {name: no-spec}\n"), "create", "--validate=false", "-f", "-")
	require.ErrorContains(t, err, "spec: Required value")
}

func TestNodeNameCannotBeChanged(t *testing.T) {
	t.Parallel()
	node := shared.node(t)
	nm := shared.maintain(t, node)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"nodeName":"other"}}`))
	require.ErrorContains(t, shared.Patch(t.Context(), nm, patch), nodeNameChanged)
	require.Equal(t, node, shared.read(t, nm).Spec.NodeName)
}

func TestAReasonMayChangeAndAnApplyMayBeRepeatedDuringADrain(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.deployment(t, ns, "web", node, 1)
	b := e.budget(t, ns, "web", 1, 1)
	nm := e.maintain(t, node)
	e.until(t, nm, "blocked", drainedReason(v1beta1.ReasonBlockedByBudget))
	pod := e.podsOn(t, node)[0]
	posted := e.evictions(t, ns, pod)

	text, err := json.Marshal(&v1beta1.NodeMaintenance{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "NodeMaintenance"},
		ObjectMeta: metav1.ObjectMeta{Name: nm.Name}, Spec: v1beta1.NodeMaintenanceSpec{NodeName: node, Reason: "a longer look"},
	})
	require.NoError(t, err)
	for range 2 {
		_, err = e.Kubectl(t.Context(), strings.NewReader(string(text)), "apply", "--server-side", "--force-conflicts", "-f", "-")
		require.NoError(t, err)
	}

	now := e.until(t, nm, "observed in its new generation", func(s v1beta1.NodeMaintenanceStatus) bool { return s.ObservedGeneration == 2 })
	require.Equal(t, v1beta1.MaintenanceRunning, now.Status.Phase)
	require.LessOrEqual(t, e.evictions(t, ns, pod)-posted, 1, "a new reason is no reason for an eviction, the 5 s are")
	e.relax(t, b)
	e.succeed(t, nm)
	require.Equal(t, 1, e.events(t, "NodeMaintenance", nm.Name)["BeginMaintenance"])
}

func drainedReason(reason string) func(v1beta1.NodeMaintenanceStatus) bool {
	return func(s v1beta1.NodeMaintenanceStatus) bool {
		return conditionReason(s, v1beta1.ConditionDrained) == reason
	}
}

func conditionReason(s v1beta1.NodeMaintenanceStatus, kind string) string {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c.Reason
		}
	}
	return ""
}
