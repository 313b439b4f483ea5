// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/nodemaint/nodemaint/maintenance"
)

func TestStateInJSON(t *testing.T) {
	pod := maintenance.Pod{
		Namespace: "shop", Name: "web-0", UID: "u", Reason: "no", Owner: "ReplicaSet shop/web", Late: true,
		Budgets: []maintenance.Budget{{Name: "web", Healthy: 1, Desired: 2, Allowed: 3}},
	}
	pods := []maintenance.Pod{pod}
	state := maintenance.State{
		Phase: maintenance.Failed, Failure: maintenance.LeaseLost, Error: "e", EverSucceeded: true,
		Progress: maintenance.Progress{Recorded: true, Total: 3, Eviction: 2, Pending: 1},
		Report:   maintenance.Report{Leaving: pods, Blocked: pods, Failed: pods, Deferred: pods, Staying: pods},
		Lease:    maintenance.LeaseTaken, LeaseError: "le", LeaseErrors: 4, Updated: time.Date(2026, 5, 1, 8, 0, 0, 1, time.UTC), NodeUID: "n",
		NotReadySince: time.Date(2026, 5, 1, 7, 0, 0, 0, time.UTC),
		Record:        &maintenance.Record{V: 1, Holder: "h", Unschedulable: true, Taints: []string{"a:NoSchedule"}, Label: ptr.To("x"), Total: 3, Eviction: 2},
	}
	v := reflect.ValueOf(state)
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("json") != "-" {
			require.False(t, v.Field(i).IsZero(), "this test leaves %s out", v.Type().Field(i).Name)
		}
	}
	for _, want := range []maintenance.State{state, {}} {
		text, err := json.Marshal(want)
		require.NoError(t, err)
		var got maintenance.State
		require.NoError(t, json.Unmarshal(text, &got))
		require.Equal(t, want, got)
	}
	text, err := json.Marshal(maintenance.State{})
	require.NoError(t, err)
	require.NotContains(t, string(text), "0001-01-01", "times that are not set are left out")
}

func TestPercent(t *testing.T) {
	for _, tt := range []struct {
		reason string
		p      maintenance.Progress
		want   int
	}{
		{"not begun", maintenance.Progress{}, 0},
		{"not begun, though something was counted", maintenance.Progress{Eviction: 4}, 0},
		{"4 of 10 left", maintenance.Progress{Recorded: true, Eviction: 10, Pending: 4}, 60},
		{"2 of 6 left: rounded down", maintenance.Progress{Recorded: true, Eviction: 6, Pending: 2}, 66},
		{"1 of 1000 left", maintenance.Progress{Recorded: true, Eviction: 1000, Pending: 1}, 99},
		{"none left", maintenance.Progress{Recorded: true, Eviction: 10}, 100},
		{"a count that somebody made up", maintenance.Progress{Recorded: true, Eviction: math.MaxInt, Pending: 1}, 99},
		{"late pods make more than there were", maintenance.Progress{Recorded: true, Eviction: 2, Pending: 5}, 0},
		{"nothing had to leave", maintenance.Progress{Recorded: true, Total: 3}, 100},
		{"nothing had to leave, but late pods do", maintenance.Progress{Recorded: true, Total: 3, Pending: 1}, 0},
	} {
		t.Run(tt.reason, func(t *testing.T) { require.Equal(t, tt.want, tt.p.Percent()) })
	}
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 1_000_000)
		p := maintenance.Progress{Recorded: rapid.Bool().Draw(t, "recorded"), Total: count.Draw(t, "total"), Eviction: count.Draw(t, "eviction"), Pending: count.Draw(t, "pending")}
		got := p.Percent()
		require.GreaterOrEqual(t, got, 0)
		require.LessOrEqual(t, got, 100)
		require.Equal(t, p.Recorded && p.Pending == 0, got == 100, "100 exactly when it has begun and nothing is pending")
		if p.Recorded && p.Pending > 0 && p.Pending <= p.Eviction {
			require.Equal(t, (p.Eviction-p.Pending)*100/p.Eviction, got)
		}
		if fewer := p; p.Pending > 0 {
			fewer.Pending--
			require.GreaterOrEqual(t, fewer.Percent(), got, "it does not fall when a pod leaves")
		}
	})
}
