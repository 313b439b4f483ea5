// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// due returns the pods to post an eviction for now: those never asked for, those whose pause is over,
// and, as far as it allows disruptions, those whose budget has changed since it refused them. It takes
// them as posted.
func (m *memory) due(pods []judged, budgets known, now time.Time) []*corev1.Pod {
	var out []*corev1.Pod
	post := func(pod *corev1.Pod, a *attempt) {
		out = append(out, pod)
		a.posted = ""
		if selecting, ok := budgets.of(pod); ok {
			a.posted = versionOf(selecting)
			m.uses.charge(selecting)
		}
	}
	var early []*corev1.Pod
	for _, j := range pods {
		a := m.attempts[j.pod.UID]
		switch {
		case j.fate != leaves || j.pod.DeletionTimestamp != nil || !a.waits() || m.braked(a, now) || m.heldBack(a, now):
		case now.Before(a.due):
			early = append(early, j.pod)
		default:
			post(j.pod, a)
		}
	}
	for _, pod := range early { // after those that go anyway: what these take is no longer free
		a := m.attempts[pod.UID]
		if selecting, ok := budgets.of(pod); ok && a.freed(selecting, m.uses) {
			post(pod, a)
		}
	}
	for _, p := range out { // after the loops: one pass may evict several pods of an owner
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

// freed says whether a refused pod may be tried before its pause is over, because the budgets that
// select it are not those it was posted under. One state of a budget is tried once.
func (a *attempt) freed(budgets []*policyv1.PodDisruptionBudget, u uses) bool {
	if a.tangled != "" {
		return setOf(budgets) != a.tangled
	}
	return a.answer.kind == blocked && versionOf(budgets) != a.posted && u.allow(budgets)
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
