// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apijson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

// FuzzAdmission sends the webhook any object: it admits a new one only for a node that exists and has none, and a
// changed one only for the same node.
func FuzzAdmission(f *testing.F) {
	scheme := webhookScheme(f)
	live := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(aNode("free"), aNode("taken"), anObject("first", "taken")).Build()
	hook := admission.WithValidator(scheme, &validator{live: live, etcd: etcdAnswer{allowed: true}}).WithRecoverPanic(false)

	for _, node := range []string{
		"free", "taken", "none", "", ".", "..", "../free", "free/status", "free%2f", "FREE", "free ", "fr\u200bee", "\x00",
		strings.Repeat("n", 63), strings.Repeat("n", 253), strings.Repeat("n", 254), strings.Repeat("ü", 100_000),
	} {
		text, err := json.Marshal(objectFor("second", node))
		require.NoError(f, err)
		for _, op := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect, ""} {
			f.Add(string(op), text, text)
			f.Add(string(op), text, []byte(`{"apiVersion":"nodemaintenance.medik8s.io/v1beta1","kind":"NodeMaintenance","spec":{"nodeName":"free"}}`))
		}
	}
	for _, text := range []string{
		``, `null`, `{}`, `[]`, `{"spec":null}`, `{"spec":{"nodeName":7}}`, `{"spec":{"nodeName":"free"},"spec":{"nodeName":"none"}}`,
		`{"apiVersion":"v1","kind":"Node","spec":{"nodeName":"free"}}`, `{"spec":{"nodename":"free"}}`, `apiVersion: v1`, "{",
		strings.Repeat(`{"spec":`, 20_000),
	} {
		f.Add("CREATE", []byte(text), []byte(nil))
		f.Add("UPDATE", []byte(text), []byte(text))
		f.Add("UPDATE", []byte(text), []byte(nil))
	}
	f.Fuzz(func(t *testing.T, op string, is, was []byte) {
		if len(is) > 0 && !json.Valid(is) || len(was) > 0 && !json.Valid(was) {
			t.Skip("the API server sends JSON")
		}
		resp := hook.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			UID: "u", Operation: admissionv1.Operation(op), Object: runtime.RawExtension{Raw: is}, OldObject: runtime.RawExtension{Raw: was},
		}})

		_, err := json.Marshal(resp)
		require.NoError(t, err)
		require.NotNil(t, resp.Result)
		if !resp.Allowed {
			require.Contains(t, []int32{http.StatusBadRequest, http.StatusForbidden}, resp.Result.Code)
			require.NotEmpty(t, resp.Result.Message, "a refusal says why")
			return
		}
		switch admissionv1.Operation(op) {
		case admissionv1.Create:
			require.Equal(t, "free", nodeIn(t, is))
		case admissionv1.Update:
			require.Equal(t, nodeIn(t, was), nodeIn(t, is))
		}
	})
}

// nodeIn returns the node that the object is for, as the API server would read it.
func nodeIn(t *testing.T, text []byte) string {
	nm := &v1beta1.NodeMaintenance{}
	require.NoError(t, apijson.Unmarshal(text, nm), "what is admitted can be read")
	return nm.Spec.NodeName
}

// FuzzStoredStatus reads any status back, as whoever may write it could leave one: what it becomes keeps the
// counts in their bounds, a failure, the words and conditions of others, and comes to rest.
func FuzzStoredStatus(f *testing.F) {
	add := func(st v1beta1.NodeMaintenanceStatus) {
		text, err := json.Marshal(st)
		require.NoError(f, err)
		f.Add(text)
	}
	nm := &v1beta1.NodeMaintenance{}
	add(nm.Status)
	add(stamped(statusOf(nm, draining()), time.Date(2026, 3, 1, 8, 23, 41, 600, time.UTC)))
	add(stamped(statusOf(nm, drainingMany()), time.Unix(0, 0)))
	add(waitingStatus(objectFor("a", "n1"), "b"))
	add(statusOf(nm, maintenance.State{Phase: maintenance.Failed, Failure: maintenance.LeaseLost, LeaseErrors: 4, Error: strings.Repeat("ü", 100_000)}))
	for _, text := range []string{
		`{"phase":"Paused","drainProgress":-7,"totalPods":-1,"evictionPods":-9223372036854775808,"errorOnLeaseCount":-3}`,
		`{"phase":"Running","drainProgress":900,"totalPods":9223372036854775807,"evictionPods":9223372036854775807,"errorOnLeaseCount":9223372036854775807,
			"conditions":[{"type":"Drained","status":"Unknown","reason":"?"}],"pendingPods":["a"],"pendingPodsRefs":[{"namespace":"","name":""}]}`,
		`{"phase":"Failed","lastUpdate":"9999-12-31T23:59:59Z","conditions":[{"type":"Stalled","status":"False","reason":"Tired"}]}`,
		`{"phase":"Failed","errorOnLeaseCount":1}`, `{"phase":"Succeeded","lastUpdate":"0001-01-01T00:00:00Z","pendingPods":["a","a","a"]}`,
		`{"conditions":[{"type":"Ready","status":"True","reason":"RunningAgain"},{"type":"example.com/Theirs","status":"True","reason":"Mine","message":"ü"}]}`,
		`{"conditions":[{},{"type":"LeaseHeld","reason":"Held","message":"x"},{"type":"LeaseHeld","reason":"Lost"}]}`,
		`{"pendingPodsRefs":[{"namespace":"b","name":"x"},{"namespace":"a","name":"x"},{"namespace":"a","name":"x"}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		nm := &v1beta1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 3}, Spec: v1beta1.NodeMaintenanceSpec{NodeName: "n1"}}
		if json.Unmarshal(text, &nm.Status) != nil {
			t.Skip("the API server stores no such status")
		}
		was := nm.DeepCopy()

		s := stateOf(nm)
		once := statusOf(nm, s)

		require.Equal(t, was, nm, "what was read is left alone")
		require.GreaterOrEqual(t, once.DrainProgress, 0)
		require.LessOrEqual(t, once.DrainProgress, 100)
		require.Equal(t, was.Status.Phase, once.Phase)
		require.Equal(t, was.Status.LastError, once.LastError)
		require.Equal(t, was.Status.TotalPods, once.TotalPods)
		require.Equal(t, was.Status.EvictionPods, once.EvictionPods)
		require.Equal(t, was.Status.ErrorOnLeaseCount, once.ErrorOnLeaseCount)
		require.Equal(t, foreign(was.Status.Conditions), foreign(once.Conditions), "conditions of others")
		require.Equal(t, s.Done(), once.Phase == v1beta1.MaintenanceFailed, "what was given up stays given up")
		if s.Done() {
			require.NotEmpty(t, s.Failure)
		}

		settled := statusOf(nm, stateOf(withStatus(nm, once)))
		stored, err := json.Marshal(withStatus(nm, stamped(settled, time.Unix(1_780_000_000, 0))))
		require.NoError(t, err)
		back := &v1beta1.NodeMaintenance{}
		require.NoError(t, json.Unmarshal(stored, back))
		require.True(t, equalStatus(back.Status, statusOf(back, stateOf(back))), "it is written for ever")
	})
}

func withStatus(nm *v1beta1.NodeMaintenance, st v1beta1.NodeMaintenanceStatus) *v1beta1.NodeMaintenance {
	out := nm.DeepCopy()
	out.Status = st
	return out
}

func foreign(all []metav1.Condition) []metav1.Condition {
	ours := []string{v1beta1.ConditionReady, v1beta1.ConditionLeaseHeld, v1beta1.ConditionDrained, v1beta1.ConditionStalled}
	var out []metav1.Condition
	for _, c := range all {
		if !slices.Contains(ours, c.Type) {
			out = append(out, c)
		}
	}
	return out
}
