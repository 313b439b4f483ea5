// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func TestStatusIsWrittenAsJSON(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	for _, tc := range []struct {
		reason string
		status NodeMaintenanceStatus
		want   string
	}{
		{
			reason: "zero counts are written and an unset time is absent, not null",
			want:   `{"drainProgress":0,"totalPods":0,"evictionPods":0,"errorOnLeaseCount":0}`,
		},
		{
			reason: "every field has the name that clients know",
			status: NodeMaintenanceStatus{
				Phase: MaintenanceRunning, DrainProgress: 60, LastUpdate: &at, LastError: "e",
				PendingPods:     []string{"web-0"},
				PendingPodsRefs: []PodReference{{Namespace: "shop", Name: "web-0"}},
				TotalPods:       20, EvictionPods: 10, ErrorOnLeaseCount: 1, ObservedGeneration: 2,
				Conditions: []metav1.Condition{{
					Type: ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: 2,
					LastTransitionTime: at, Reason: ReasonRunning,
				}},
			},
			want: `{"phase":"Running","drainProgress":60,"lastUpdate":"2026-03-04T05:06:07Z","lastError":"e",
				"pendingPods":["web-0"],"pendingPodsRefs":[{"namespace":"shop","name":"web-0"}],
				"totalPods":20,"evictionPods":10,"errorOnLeaseCount":1,"observedGeneration":2,
				"conditions":[{"type":"Ready","status":"False","observedGeneration":2,
				"lastTransitionTime":"2026-03-04T05:06:07Z","reason":"Running","message":""}]}`,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := json.Marshal(tc.status)
			require.NoError(t, err)
			require.JSONEq(t, tc.want, string(got))

			var back NodeMaintenanceStatus
			require.NoError(t, json.Unmarshal(got, &back))
			again, err := json.Marshal(back)
			require.NoError(t, err)
			require.JSONEq(t, tc.want, string(again), "a round trip changes nothing")
		})
	}
}

func TestObjectOfTheMedik8sOperatorIsRead(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, AddToScheme(scheme))
	written := []byte(`{"apiVersion":"nodemaintenance.medik8s.io/v1beta1","kind":"NodeMaintenance",
		"metadata":{"name":"nm","finalizers":["foregroundDeleteNodeMaintenance"]},
		"spec":{"nodeName":"n1","reason":"disk"},
		"status":{"phase":"Running","drainProgress":50,"lastUpdate":null,"pendingPods":["a"],
		"totalpods":7,"evictionPods":2}}`)

	obj, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode(written, nil, nil)
	require.NoError(t, err)
	nm, ok := obj.(*NodeMaintenance)
	require.True(t, ok)
	require.Contains(t, nm.Finalizers, Finalizer)
	require.Equal(t, "n1", nm.Spec.NodeName)
	require.Equal(t, 2, nm.Status.EvictionPods)
	require.Zero(t, nm.Status.TotalPods, "its spelling is unknown here; the pods are counted anew")
	require.Nil(t, nm.Status.LastUpdate)
}

func TestDeepCopySharesNothing(t *testing.T) {
	at := metav1.Now()
	nm := &NodeMaintenance{Status: NodeMaintenanceStatus{LastUpdate: &at, PendingPods: []string{"a"}}}
	other := nm.DeepCopy()
	other.Status.PendingPods[0] = "b"
	require.Equal(t, "a", nm.Status.PendingPods[0])
	require.NotSame(t, nm.Status.LastUpdate, other.Status.LastUpdate)
}

func TestResource(t *testing.T) {
	require.Equal(t, "nodemaintenances.nodemaintenance.medik8s.io", Resource("nodemaintenances").String())
}
