// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memory is what a Drainer remembers of the drain of one node, from its first pass to Cancel. Losing
// it costs some calls twice and nothing else: what is certain stands in the pods themselves.
type memory struct {
	flights sync.WaitGroup  // calls queued or under way
	life    context.Context // ends with end, and every call with it
	finish  context.CancelFunc

	judging  sync.Mutex
	verdicts verdicts

	blocked atomic.Bool                        // the last report said so of a pod
	leaving atomic.Pointer[map[types.UID]bool] // the pods that it had still to leave, but for those that leave last

	mu       sync.Mutex
	began    bool
	alone    time.Time // when the last pods were first reported to be the only ones left; zero if they are not
	attempts map[types.UID]*attempt
	parted   []Pod // evicted and gone, not yet reported
	brake    brake
	awaited  map[string]bool // namespaces whose budgets were waited for
}

func newMemory() *memory {
	life, finish := context.WithCancel(context.Background())
	return &memory{life: life, finish: finish, attempts: map[types.UID]*attempt{}, awaited: map[string]bool{}, verdicts: verdicts{}}
}

// end keeps further calls from beginning and ends those under way.
func (m *memory) end() {
	m.mu.Lock() // not while a pass adds flights
	defer m.mu.Unlock()
	m.finish()
}

// attempt is what is remembered of one pod: what we asked for, and what we were told.
type attempt struct {
	pod   Pod
	last  bool // leaves after all others
	late  bool
	owner string

	flying bool
	asked  time.Time // first posted
	answer answer    // the last one
	stale  int       // answers of that kind in a row
	due    time.Time // not to be posted again before
	news   bool      // answer is not yet reported

	told    bool                            // that it is blocked was reported
	known   bool                            // the budgets were read since the last answer
	budgets []*policyv1.PodDisruptionBudget // that select it, as last read
	behind  types.UID                       // the budget whose lane its call went through; empty for none
	tangled string                          // the set of them, several, for which the API server evicts no such pod
}

// waits says whether an eviction of the pod is still to come.
func (a *attempt) waits() bool {
	return !a.flying && a.answer.kind != accepted && a.answer.kind != going && a.answer.kind != gone
}

// queued says whether the pod waits behind a budget and was not posted yet.
func (a *attempt) queued() bool { return a.flying && a.behind != "" && a.answer.kind == unasked }

// observe notes which pods are there: new ones are late unless this is the first pass, and those
// that went are forgotten.
func (m *memory) observe(pods []judged, last func(*corev1.Pod) bool, now time.Time) {
	here := make(map[types.UID]bool, len(pods))
	for _, j := range pods {
		here[j.pod.UID] = true
		if m.attempts[j.pod.UID] != nil {
			continue
		}
		a := &attempt{pod: podOf(j.pod), last: last(j.pod), late: m.began, owner: ownerOf(j.pod)}
		if a.late {
			a.pod.Late, a.pod.Owner = true, a.owner
		}
		m.attempts[j.pod.UID] = a
		if a.late && j.fate == leaves && j.pod.DeletionTimestamp == nil {
			m.brake.arrived(a.owner, now)
		}
	}
	for uid, a := range m.attempts {
		if here[uid] || a.flying {
			continue
		}
		if a.news && a.answer.kind == accepted { // it went before its answer was reported
			m.parted = append(m.parted, a.pod)
		}
		delete(m.attempts, uid)
	}
	m.began = true
}

// landed notes the answer to the call for a pod.
func (m *memory) landed(uid types.UID, got answer, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.attempts[uid]
	a.flying, a.answer, a.news, a.known, a.tangled = false, got, true, false, ""
	if a.stale++; got.kind != stale {
		a.stale = 0
	}
	switch got.kind {
	case throttled:
		a.due = now.Add(got.wait)
	case unasked, brokenOff: // dropped before it was made, or by us
		a.due = time.Time{}
	case stale:
		if a.stale == 1 { // the pod may have changed a moment too early; more than that is no collision
			a.due = now.Add(minWait)
			return
		}
		fallthrough
	default:
		a.due = now.Add(RetryDelay)
	}
}
