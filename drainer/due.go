// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// posting is an eviction that is due, with the budget behind which it waits its turn; nil for none.
type posting struct {
	pod    *corev1.Pod
	behind *policyv1.PodDisruptionBudget
}

// due returns the evictions to be posted now: of pods never asked for, of those whose pause is over, and of
// those that wait for nothing but a budget, whose lane knows when.
func (m *memory) due(pods []judged, budgets known, now time.Time) []posting {
	var out []posting
	for _, j := range pods {
		a := m.attempts[j.pod.UID]
		if j.fate != leaves || j.pod.DeletionTimestamp != nil || !a.waits() || m.braked(a, now) || m.heldBack(a, now) {
			continue
		}
		selecting, ok := budgets.of(j.pod)
		behind := waitsBehind(j.pod, selecting)
		if !now.Before(a.due) || behind != nil && a.answer.kind == blocked || ok && a.freed(selecting) {
			out = append(out, posting{j.pod, behind})
		}
	}
	for _, p := range out { // after the loop: one pass may evict several pods of an owner
		if a := m.attempts[p.pod.UID]; a.late {
			m.brake.evicting(a.owner, now)
		}
	}
	return out
}

// waitsBehind returns the budget behind which the pod waits its turn; nil if it need not: no budget selects it,
// several do, so that none is ever granted, or its budget lets it go whatever disruptions it allows.
func waitsBehind(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	if len(budgets) != 1 || spares(budgets[0], pod) {
		return nil
	}
	return budgets[0]
}

func (m *memory) braked(a *attempt, now time.Time) bool {
	if !a.late {
		return false
	}
	when, _ := m.brake.due(a.owner)
	return now.Before(when)
}

// heldBack says whether a pod that leaves last has to wait for others, or for the report that none are left.
func (m *memory) heldBack(a *attempt, now time.Time) bool {
	return a.last && (m.alone.IsZero() || now.Before(m.alone.Add(LastDelay)))
}

// freed says whether a refused pod may be tried before its pause is over, because other budgets select it than
// those that refused it. If none was known to have refused it, that none is there now frees it of nothing.
func (a *attempt) freed(budgets []*policyv1.PodDisruptionBudget) bool {
	if a.tangled != "" {
		return setOf(budgets) != a.tangled
	}
	return a.answer.kind == blocked && a.known && len(a.budgets) > 0 && len(budgets) == 0
}

// wait returns how long until the next pod may be posted; 0 if only an event can make one.
func (m *memory) wait(pods []judged, now time.Time) time.Duration {
	var next time.Time
	for _, j := range pods {
		if j.fate == kept || j.fate == unknown {
			next = earlier(next, now.Add(RetryDelay))
			continue
		}
		a := m.attempts[j.pod.UID]
		if a == nil || j.fate != leaves || j.pod.DeletionTimestamp != nil || !a.waits() {
			continue
		}
		when := latest(now, a.due)
		if a.last {
			if m.alone.IsZero() {
				continue // the last of the others brings the next pass
			}
			when = latest(when, m.alone.Add(LastDelay))
		}
		if a.late {
			brake, _ := m.brake.due(a.owner)
			when = latest(when, brake)
		}
		next = earlier(next, when)
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(now), time.Millisecond)
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
