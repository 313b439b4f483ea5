// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

// stateOf rebuilds the state of a maintenance from what is stored in its object. The record is read from
// the node, and why a pod is pending is found out anew.
func stateOf(nm *v1beta1.NodeMaintenance) maintenance.State {
	st := nm.Status
	s := maintenance.State{
		Phase:         maintenance.Phase(st.Phase),
		Failure:       failureOf(st),
		Error:         st.LastError,
		EverSucceeded: everSucceeded(st),
		Progress: maintenance.Progress{
			Recorded: recorded(st), Total: st.TotalPods, Eviction: st.EvictionPods, Pending: len(st.PendingPods),
		},
		Lease:       maintenance.LeaseStatus(reasonOf(st, v1beta1.ConditionLeaseHeld)),
		LeaseError:  messageOf(st, v1beta1.ConditionLeaseHeld),
		LeaseErrors: st.ErrorOnLeaseCount,
		NodeUID:     ownerUID(nm),
	}
	if st.LastUpdate != nil {
		// The stored time has lost its fraction. Two failures that are to lie apart are counted from the end
		// of that second.
		s.Updated = st.LastUpdate.Add(time.Second - time.Nanosecond)
	}
	for _, p := range st.PendingPodsRefs {
		s.Report.Deferred = append(s.Report.Deferred, maintenance.Pod{Namespace: p.Namespace, Name: p.Name})
	}
	return s
}

// recorded says whether the maintenance had begun. Drained is there from then on. An operator that knew no
// conditions kept no record either: what it left begins anew, whatever its phase.
func recorded(st v1beta1.NodeMaintenanceStatus) bool {
	return meta.FindStatusCondition(st.Conditions, v1beta1.ConditionDrained) != nil
}

func everSucceeded(st v1beta1.NodeMaintenanceStatus) bool {
	return st.Phase == v1beta1.MaintenanceSucceeded || reasonOf(st, v1beta1.ConditionReady) == v1beta1.ReasonRunningAgain
}

// failureOf returns why the maintenance failed. An operator that knew no conditions left only the count.
func failureOf(st v1beta1.NodeMaintenanceStatus) maintenance.Failure {
	if st.Phase != v1beta1.MaintenanceFailed {
		return ""
	}
	guess := maintenance.NodeNotFound
	if st.ErrorOnLeaseCount > 0 {
		guess = maintenance.LeaseLost
	}
	return cmp.Or(maintenance.Failure(reasonOf(st, v1beta1.ConditionStalled)), guess)
}

// reasonOf returns the reason of a condition; empty if it is not there.
func reasonOf(st v1beta1.NodeMaintenanceStatus, condition string) string {
	if c := meta.FindStatusCondition(st.Conditions, condition); c != nil {
		return c.Reason
	}
	return ""
}

// messageOf returns the message of a condition; empty if it is not there.
func messageOf(st v1beta1.NodeMaintenanceStatus, condition string) string {
	if c := meta.FindStatusCondition(st.Conditions, condition); c != nil {
		return c.Message
	}
	return ""
}
