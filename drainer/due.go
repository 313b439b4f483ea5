// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

// due returns the pods to post an eviction for now: those never asked for, those whose pause is over,
// and, as far as it allows disruptions, those whose budget has changed since it refused them. It takes
// them as posted.
func (m *memory) due(pods []judged, all []*policyv1.PodDisruptionBudget, now time.Time) []*corev1.Pod {
	var out []*corev1.Pod
	used := map[types.UID]int32{} // disruptions taken up in this pass, by budget
	for _, j := range pods {
		a := m.attempts[j.pod.UID]
		if j.fate != leaves || j.pod.DeletionTimestamp != nil || !a.waits() || m.braked(a, now) || m.heldBack(a, now) {
			continue
		}
		budgets := selecting(j.pod, all)
		if now.Before(a.due) && !a.frees(budgets, used) {
			continue
		}
		a.posted = versionOf(budgets)
		out = append(out, j.pod)
	}
	for _, p := range out { // after the loop: one pass may evict several pods of an owner
		if a := m.attempts[p.UID]; a.late {
			m.brake.evicting(a.owner, now)
		}
	}
	return out
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

// frees says whether a refused pod may be tried before its pause is over, because the budgets that
// select it are not those it was posted under. One state of a budget is tried once.
func (a *attempt) frees(budgets []*policyv1.PodDisruptionBudget, used map[types.UID]int32) bool {
	switch {
	case a.tangled:
		return setOf(budgets) != setOf(a.budgets)
	case a.answer.kind != blocked || len(a.budgets) == 0 || versionOf(budgets) == a.posted:
		return false
	case len(budgets) == 0:
		return true // the budget that blocked it is gone
	case len(budgets) > 1:
		return false
	}
	b := budgets[0]
	if b.Status.DisruptionsAllowed <= used[b.UID] {
		return false
	}
	used[b.UID]++
	return true
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
		if j.fate != leaves || j.pod.DeletionTimestamp != nil || !a.waits() {
			continue
		}
		when := a.due
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
