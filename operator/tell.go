// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

// tell logs, and sends events about, what a pass did: each eviction accepted, each pod blocked for the first
// time, marks put back. A retry is no news.
func (t *teller) tell(ctx context.Context, nm *v1beta1.NodeMaintenance, next maintenance.State) {
	if len(next.Report.Evicted)+len(next.Report.NewlyBlocked)+len(next.Reheld) == 0 {
		return // as most passes
	}
	log := logf.FromContext(ctx).WithValues("node", nm.Spec.NodeName)
	for _, p := range next.Report.Evicted {
		log.Info("eviction accepted", "pod", p.Namespace+"/"+p.Name)
	}
	for _, p := range next.Report.NewlyBlocked {
		log.Info("pod blocked", "pod", p.Namespace+"/"+p.Name, "budgets", p.Why())
	}
	if len(next.Report.NewlyBlocked) > 0 {
		t.recorder.Event(nm, corev1.EventTypeWarning, "PodBlocked", blockedMessage(next.Report.NewlyBlocked))
	}
	if len(next.Reheld) > 0 {
		marks := make([]string, 0, len(next.Reheld))
		for _, m := range next.Reheld {
			marks = append(marks, string(m))
		}
		log.Info("marks put back", "marks", marks)
		t.recorder.Eventf(nm, corev1.EventTypeWarning, "NodeHeldAgain", "Put back on node %s what somebody had taken off: %s", nm.Spec.NodeName, strings.Join(marks, ", "))
	}
}

// tellStored does the same for what another status says: the lease lost, a new phase, the node given back
// because of it. It is told when it is stored, because a pass that began from an old copy of the object finds
// the same once more.
func (t *teller) tellStored(ctx context.Context, before, nm *v1beta1.NodeMaintenance) {
	log := logf.FromContext(ctx).WithValues("node", nm.Spec.NodeName)
	was, is := reasonOf(before.Status, v1beta1.ConditionLeaseHeld), reasonOf(nm.Status, v1beta1.ConditionLeaseHeld)
	if reason, words := leaseNews(was, is); reason != "" {
		log.Info(words, "status", is, "reason", nm.Status.LastError)
		t.recorder.Eventf(nm, corev1.EventTypeWarning, reason, "%s", nm.Status.LastError)
	}
	if before.Status.Phase == nm.Status.Phase {
		return
	}
	log.Info("phase changed", "from", before.Status.Phase, "to", nm.Status.Phase)
	if reasonOf(nm.Status, v1beta1.ConditionStalled) == v1beta1.ReasonLeaseLost {
		log.Info("node given back", "because", nm.Status.LastError)
	}
}

// leaseNews returns the reason of the event, and the words of the log, for a change of what became of the lease; empty for none.
// An object for which another acts has no word of it.
func leaseNews(was, is string) (reason, words string) {
	held := was == v1beta1.ReasonHeld
	switch {
	case is == v1beta1.ReasonLost && was != is, is == v1beta1.ReasonHeldByAnother && held:
		return "LeaseLost", "lease lost"
	case is == v1beta1.ReasonRefused && held: // it may be ours still
		return "LeaseRefused", "lease refused"
	default:
		return "", ""
	}
}

// toldPods is how many pods an event names.
const toldPods = 5

// blockedMessage tells of the pods that a pass found blocked, in one event: they are often many.
func blockedMessage(pods []maintenance.Pod) string {
	var lines []string
	for _, p := range pods[:min(len(pods), toldPods)] {
		lines = append(lines, fmt.Sprintf("pod %s/%s cannot be evicted now: %s", p.Namespace, p.Name, p.Why()))
	}
	if more := len(pods) - toldPods; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}
