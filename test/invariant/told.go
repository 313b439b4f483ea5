// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// The reasons of the events that an object has once.
const (
	begun     = "BeginMaintenance"
	succeeded = "SucceedMaintenance"
	failed    = "FailedMaintenance"
	removed   = "RemovedMaintenance"
	uncordon  = "UncordonNode"
)

// step is one of those events.
type step struct {
	object types.UID
	reason string
}

// told returns how often each step was told. The event of a node belongs to the object by its name, which ends in
// the object's UID.
func (s Snapshot) told() map[step]int {
	out := map[step]int{}
	for _, e := range s.Events {
		switch e.Reason {
		case begun, succeeded, failed, removed:
			out[step{e.InvolvedObject.UID, e.Reason}] += times(e)
		case uncordon:
			_, uid, _ := strings.Cut(e.Name, "-")
			out[step{types.UID(uid), e.Reason}] += times(e)
		}
	}
	return out
}

func times(e corev1.Event) int { return int(max(e.Count, 1)) }

// ToldOnce holds that no step was told twice.
func ToldOnce(s Snapshot) []Breach {
	r := rule{name: "told once"}
	for step, n := range s.told() {
		if n > 1 {
			r.broken(string(step.object), "%s was told %d times", step.reason, n)
		}
	}
	return r.out
}

// ToldAll holds that an object that is there has told of each step that it has made: of its beginning and of its success.
func ToldAll(s Snapshot) []Breach {
	r := rule{name: "told all"}
	told := s.told()
	for _, nm := range s.Maintenances {
		if nm.Status.Phase != v1beta1.MaintenanceSucceeded {
			continue
		}
		for _, reason := range []string{begun, succeeded} {
			if told[step{nm.UID, reason}] == 0 {
				r.broken(nm.Name, "it has Succeeded without %s", reason)
			}
		}
	}
	return r.out
}

const ruleToldEnd = "told its end"

// ToldEnd holds that an object that has gone, and had begun, has told of its end.
func ToldEnd(s Snapshot) []Breach {
	told := s.told()
	there := map[types.UID]bool{}
	for _, nm := range s.Maintenances {
		there[nm.UID] = true
	}
	var out []Breach
	for _, e := range s.Events {
		of := e.InvolvedObject
		if e.Reason == begun && !there[of.UID] && told[step{of.UID, removed}] == 0 {
			out = append(out, Breach{
				Rule: ruleToldEnd, Object: string(of.UID), Words: "it has begun, is gone, and never told " + removed,
				node: of.Name, begun: e.FirstTimestamp.Time,
			})
		}
	}
	return out
}

// Done holds that every object has succeeded and nothing stands in its way.
func Done(s Snapshot) []Breach {
	r := rule{name: "done"}
	for _, nm := range s.Maintenances {
		if nm.Status.Phase != v1beta1.MaintenanceSucceeded || nm.Status.LastError != "" || nm.DeletionTimestamp != nil {
			r.broken(nm.Name, "phase %q, progress %d, last error %q, pending %v, being deleted %t", nm.Status.Phase,
				nm.Status.DrainProgress, nm.Status.LastError, nm.Status.PendingPods, nm.DeletionTimestamp != nil)
		}
	}
	return r.out
}
