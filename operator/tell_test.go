// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

func storedStatus(phase v1beta1.MaintenancePhase, reasons ...string) *v1beta1.NodeMaintenance {
	nm := &v1beta1.NodeMaintenance{Spec: v1beta1.NodeMaintenanceSpec{NodeName: "n"}, Status: v1beta1.NodeMaintenanceStatus{Phase: phase, LastError: "words"}}
	for i := 0; i < len(reasons); i += 2 {
		nm.Status.Conditions = append(nm.Status.Conditions, metav1.Condition{Type: reasons[i], Reason: reasons[i+1]})
	}
	return nm
}

func TestTellStored(t *testing.T) {
	const leaseHeld, stalled = v1beta1.ConditionLeaseHeld, v1beta1.ConditionStalled
	for _, tc := range []struct {
		reason      string
		before, now *v1beta1.NodeMaintenance
		lines       []string
		events      int
	}{
		{"nothing new", storedStatus("Running", leaseHeld, "Held"), storedStatus("Running", leaseHeld, "Held"), nil, 0},
		{"the beginning", storedStatus(""), storedStatus("Running", leaseHeld, "Held"), []string{"phase changed"}, 0},
		{
			"another has the lease that was ours",
			storedStatus("Succeeded", leaseHeld, "Held"), storedStatus("Running", leaseHeld, "Lost"),
			[]string{"lease lost", "phase changed"}, 1,
		},
		{
			"it is refused, and may be ours still",
			storedStatus("Succeeded", leaseHeld, "Held"), storedStatus("Succeeded", leaseHeld, "Refused"), []string{"lease refused"}, 1,
		},
		{
			"it was refused, and is another's",
			storedStatus("Running", leaseHeld, "Refused"), storedStatus("Running", leaseHeld, "Lost"), []string{"lease lost"}, 1,
		},
		{
			"another took it, and the record went too",
			storedStatus("Running", leaseHeld, "Held"), storedStatus("Running", leaseHeld, "HeldByAnother"), []string{"lease lost"}, 1,
		},
		{
			"it is lost for good once",
			storedStatus("Running", leaseHeld, "Lost"), storedStatus("Running", leaseHeld, "Lost"), nil, 0,
		},
		{
			"another object acts, for the same holder",
			storedStatus("Running", leaseHeld, "Held"), storedStatus("Running"), nil, 0,
		},
		{
			"it was never ours",
			storedStatus(""), storedStatus("Running", leaseHeld, "HeldByAnother"), []string{"phase changed"}, 0,
		},
		{
			"given up, and the node given back",
			storedStatus("Running", leaseHeld, "Lost"), storedStatus("Failed", leaseHeld, "Lost", stalled, "LeaseLost"),
			[]string{"phase changed", "node given back"}, 0,
		},
		{
			"given up before anything was touched",
			storedStatus(""), storedStatus("Failed", stalled, "NodeNotFound"), []string{"phase changed"}, 0,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var lines []string
			log := funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
			recorder := record.NewFakeRecorder(10)
			(&teller{recorder: recorder}).tellStored(logr.NewContext(t.Context(), log), tc.before, tc.now)
			require.Len(t, lines, len(tc.lines))
			for i, want := range tc.lines {
				require.Contains(t, lines[i], `"msg":"`+want+`"`)
				require.Contains(t, lines[i], `"node":"n"`)
			}
			require.Len(t, recorder.Events, tc.events)
		})
	}
}
