// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

// statusOf returns the status of nm for that state of its maintenance. Its times are those of the status
// that nm has; stamped sets them for what changed.
func statusOf(nm *v1beta1.NodeMaintenance, s maintenance.State) v1beta1.NodeMaintenanceStatus {
	st := *nm.Status.DeepCopy()
	st.Phase = v1beta1.MaintenancePhase(s.Phase)
	st.LastError = s.Error
	st.DrainProgress = s.Progress.Percent()
	st.TotalPods = s.Progress.Total
	st.EvictionPods = s.Progress.Eviction
	st.ErrorOnLeaseCount = s.LeaseErrors
	st.ObservedGeneration = nm.Generation
	st.PendingPods, st.PendingPodsRefs = nil, nil
	for _, p := range s.Report.Pending() {
		st.PendingPods = append(st.PendingPods, p.Name)
		st.PendingPodsRefs = append(st.PendingPodsRefs, v1beta1.PodReference{Namespace: p.Namespace, Name: p.Name})
	}
	setConditions(&st, s)
	return st
}

func setConditions(st *v1beta1.NodeMaintenanceStatus, s maintenance.State) {
	set := func(kind string, is bool, reason, message string) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: st.ObservedGeneration}
		if is {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&st.Conditions, c)
	}
	set(v1beta1.ConditionReady, s.Phase == maintenance.Succeeded, readyReason(s), "")
	if s.Lease != "" {
		set(v1beta1.ConditionLeaseHeld, s.Lease == maintenance.LeaseHeld, string(s.Lease), s.LeaseError)
	}
	switch {
	case !s.Progress.Recorded: // not begun, or given back: nothing to say of a drain
		meta.RemoveStatusCondition(&st.Conditions, v1beta1.ConditionDrained)
	case !s.Looked:
		keepDrained(st)
		if c := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionDrained); c != nil && c.Status == metav1.ConditionTrue && s.Phase != maintenance.Succeeded {
			meta.SetStatusCondition(&st.Conditions, metav1.Condition{
				Type: c.Type, Status: metav1.ConditionUnknown, Reason: v1beta1.ReasonUnseen, ObservedGeneration: st.ObservedGeneration,
				Message: "all had left when a pass last looked at the pods",
			})
		}
	default:
		cause, message := s.Explain()
		set(v1beta1.ConditionDrained, cause == maintenance.CauseDrained, string(cause), message)
	}
	meta.RemoveStatusCondition(&st.Conditions, v1beta1.ConditionStalled)
	if s.Phase == maintenance.Failed {
		set(v1beta1.ConditionStalled, true, string(s.Failure), s.Error)
	}
}

// keepDrained leaves what was said of a drain that no pass has looked at since.
func keepDrained(st *v1beta1.NodeMaintenanceStatus) {
	if c := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionDrained); c != nil {
		c.ObservedGeneration = st.ObservedGeneration
	}
}

func readyReason(s maintenance.State) string {
	switch {
	case s.Phase == maintenance.Succeeded:
		return v1beta1.ReasonSucceeded
	case s.Phase == maintenance.Failed:
		return v1beta1.ReasonFailed
	case s.EverSucceeded:
		return v1beta1.ReasonRunningAgain
	default:
		return v1beta1.ReasonRunning
	}
}

// waitingStatus returns the status of an object whose node another one maintains.
func waitingStatus(nm *v1beta1.NodeMaintenance, acting string) v1beta1.NodeMaintenanceStatus {
	return statusOf(&v1beta1.NodeMaintenance{ObjectMeta: nm.ObjectMeta}, maintenance.State{
		Phase: maintenance.Running,
		Error: fmt.Sprintf("node %q is under maintenance by NodeMaintenance %q already; this one waits until that one goes", nm.Spec.NodeName, acting),
	})
}

// equalStatus compares what two statuses say, not when it was said.
func equalStatus(a, b v1beta1.NodeMaintenanceStatus) bool {
	return equality.Semantic.DeepEqual(timeless(a), timeless(b))
}

func timeless(st v1beta1.NodeMaintenanceStatus) v1beta1.NodeMaintenanceStatus {
	out := *st.DeepCopy()
	out.LastUpdate = nil
	for i := range out.Conditions {
		out.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return out
}

// stamped returns st as changed at now.
func stamped(st v1beta1.NodeMaintenanceStatus, now time.Time) v1beta1.NodeMaintenanceStatus {
	stamp := metav1.NewTime(now)
	st.LastUpdate = &stamp
	return st
}
