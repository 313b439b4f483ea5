// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

func draining() maintenance.State {
	return maintenance.State{
		Phase: maintenance.Running, Lease: maintenance.LeaseHeld, NodeUID: "node-uid", Looked: true,
		Progress: maintenance.Progress{Recorded: true, Total: 10, Eviction: 6, Pending: 2},
		Error:    "shop/web-0: budget shop/web needs 3 healthy pods and has 3",
		Report: maintenance.Report{
			Leaving: []maintenance.Pod{{Namespace: "b", Name: "web-0", UID: "1"}},
			Blocked: []maintenance.Pod{{Namespace: "a", Name: "web-0", UID: "2", Budgets: []maintenance.Budget{{Name: "web", Healthy: 3, Desired: 3}}}},
		},
	}
}

func TestStatusOf(t *testing.T) {
	held := func(edit func(*maintenance.State)) maintenance.State {
		s := draining()
		edit(&s)
		return s
	}
	for _, row := range []struct {
		reason string
		state  maintenance.State
		want   map[string]string // condition=status to reason
	}{
		{"blocked by a budget", draining(), map[string]string{"Ready=False": "Running", "LeaseHeld=True": "Held", "Drained=False": "BlockedByBudget"}},
		{"drained", held(func(s *maintenance.State) {
			s.Phase, s.EverSucceeded, s.Report, s.Progress.Pending = maintenance.Succeeded, true, maintenance.Report{}, 0
		}), map[string]string{"Ready=True": "Succeeded", "LeaseHeld=True": "Held", "Drained=True": "Drained"}},
		{"pods came after it had succeeded", held(func(s *maintenance.State) {
			s.EverSucceeded, s.Report = true, maintenance.Report{Deferred: []maintenance.Pod{{Name: "late", Late: true}}}
		}), map[string]string{"Ready=False": "RunningAgain", "LeaseHeld=True": "Held", "Drained=False": "LatePods"}},
		{"waiting for another's lease", maintenance.State{Phase: maintenance.Running, Lease: maintenance.LeaseHeldByAnother, Error: "held"},
			map[string]string{"Ready=False": "Running", "LeaseHeld=False": "HeldByAnother"}},
		{"no such node", maintenance.State{Phase: maintenance.Failed, Failure: maintenance.NodeNotFound, Error: `nodes "x" not found`},
			map[string]string{"Ready=False": "Failed", "Stalled=True": "NodeNotFound"}},
		{"drained when it was last looked at", held(func(s *maintenance.State) {
			s.Looked, s.EverSucceeded, s.Report, s.Progress.Pending, s.Error = false, true, maintenance.Report{}, 0, "down"
		}), map[string]string{"Ready=False": "RunningAgain", "LeaseHeld=True": "Held", "Drained=Unknown": "Unseen"}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			nm := &v1beta1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
			if !row.state.Looked && row.state.Progress.Recorded {
				nm.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionDrained, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonDrained}}
			}
			st := statusOf(nm, row.state)
			got := map[string]string{}
			for _, c := range st.Conditions {
				got[c.Type+"="+string(c.Status)] = c.Reason
				require.EqualValues(t, 7, c.ObservedGeneration)
			}
			require.Equal(t, row.want, got)
			require.EqualValues(t, 7, st.ObservedGeneration)
			require.Nil(t, st.LastUpdate, "statusOf sets no times")
		})
	}
}

func TestStatusListsPendingPodsByNameThenNamespace(t *testing.T) {
	st := statusOf(&v1beta1.NodeMaintenance{}, draining())
	require.Equal(t, []string{"web-0", "web-0"}, st.PendingPods)
	require.Equal(t, []v1beta1.PodReference{{Namespace: "a", Name: "web-0"}, {Namespace: "b", Name: "web-0"}}, st.PendingPodsRefs)
	require.Equal(t, 66, st.DrainProgress)
}

// What the next pass must know survives the way through a stored status.
func TestStateSurvivesTheStatus(t *testing.T) {
	want := draining()
	want.LeaseErrors, want.EverSucceeded = 2, true
	nm := &v1beta1.NodeMaintenance{Spec: v1beta1.NodeMaintenanceSpec{NodeName: "n1"}}
	nm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "node-uid"}}
	now := time.Date(2026, 3, 1, 8, 23, 41, 600, time.UTC)
	nm.Status = stamped(statusOf(nm, want), now)
	text, err := json.Marshal(nm)
	require.NoError(t, err)
	stored := &v1beta1.NodeMaintenance{}
	require.NoError(t, json.Unmarshal(text, stored))

	got := stateOf(stored)

	require.False(t, got.Updated.Before(now), "a failure counts only when the pause since is surely over")
	require.Less(t, got.Updated.Sub(now), time.Second)
	got.Updated = time.Time{}
	var pending []string
	for _, p := range got.Report.Pending() {
		pending = append(pending, p.Namespace+"/"+p.Name)
	}
	require.Equal(t, []string{"a/web-0", "b/web-0"}, pending)
	got.Report, want.Report = maintenance.Report{}, maintenance.Report{}
	want.Looked = false // a new pass has yet to look
	require.Equal(t, want, got)
}

func TestStateOfAnObjectThatTheReferenceLeft(t *testing.T) {
	nm := &v1beta1.NodeMaintenance{Status: v1beta1.NodeMaintenanceStatus{Phase: v1beta1.MaintenanceRunning, EvictionPods: 6}}
	s := stateOf(nm)
	require.False(t, s.Progress.Recorded, "there is no record yet")
	require.Equal(t, 6, s.Progress.Eviction, "the count is kept")
	nm.Status.Phase = v1beta1.MaintenanceSucceeded
	s = stateOf(nm)
	require.False(t, s.Progress.Recorded, "nor after its drain")
	require.True(t, s.EverSucceeded, "that it succeeds is no news")
	nm.Status.Phase, nm.Status.ErrorOnLeaseCount = v1beta1.MaintenanceFailed, 4
	require.Equal(t, maintenance.LeaseLost, stateOf(nm).Failure)
}

// A pass that did not get to the drain must not claim anything new about it.
func TestDrainedIsKeptWhileTheLeaseIsNotOurs(t *testing.T) {
	nm := &v1beta1.NodeMaintenance{}
	nm.Status = statusOf(nm, draining())
	lost := stateOf(nm)
	lost.Lease, lost.LeaseErrors, lost.LeaseError, lost.Error = maintenance.LeaseTaken, 1, "held by another", "held by another"
	st := statusOf(nm, lost)
	require.Equal(t, meta.FindStatusCondition(nm.Status.Conditions, "Drained").Message, meta.FindStatusCondition(st.Conditions, "Drained").Message)
	require.Equal(t, nm.Status.PendingPodsRefs, st.PendingPodsRefs)
	require.Equal(t, "Lost", reasonOf(st, "LeaseHeld"))
}

func TestEqualStatusIgnoresTimes(t *testing.T) {
	st := statusOf(&v1beta1.NodeMaintenance{}, draining())
	require.True(t, equalStatus(st, stamped(st, time.Now())))
	other := *st.DeepCopy()
	other.LastError = "other"
	require.False(t, equalStatus(st, other))
}

func TestUrgent(t *testing.T) {
	at := func(edit func(*maintenance.State)) v1beta1.NodeMaintenanceStatus {
		s := draining()
		edit(&s)
		return statusOf(&v1beta1.NodeMaintenance{}, s)
	}
	free := at(func(s *maintenance.State) { s.Report.Blocked = nil; s.Progress.Pending = 1 })
	blocked := at(func(*maintenance.State) {})
	left := func(lastError string, pods ...maintenance.Pod) v1beta1.NodeMaintenanceStatus {
		return at(func(s *maintenance.State) { s.Report, s.Error = maintenance.Report{Deferred: pods}, lastError })
	}
	own, other := maintenance.Pod{Namespace: itself.Namespace, Name: itself.Name}, maintenance.Pod{Namespace: "shop", Name: "web-0"}
	for _, row := range []struct {
		reason     string
		have, want v1beta1.NodeMaintenanceStatus
		urgent     bool
	}{
		{"a first block", free, blocked, true},
		{"still blocked, fewer pods", blocked, at(func(s *maintenance.State) { s.Report.Leaving = nil; s.Progress.Pending = 1 }), false},
		{"another phase", blocked, at(func(s *maintenance.State) { s.Phase = maintenance.Succeeded }), true},
		{"a lease failure", blocked, at(func(s *maintenance.State) { s.LeaseErrors = 1 }), true},
		{"the lease is somebody else's", blocked, at(func(s *maintenance.State) { s.Lease = maintenance.LeaseTaken }), true},
		{"freed", blocked, free, false},
		{"only the operator's own pod is left", left("", own, other), left("", own), true},
		{"it still is", left("", own), left("words", own), false},
		{"only another is left", left("", own, other), left("", other), false},
	} {
		t.Run(row.reason, func(t *testing.T) { require.Equal(t, row.urgent, urgent(row.have, row.want, itself)) })
	}
}
