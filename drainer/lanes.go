// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// abreast is how many calls for one budget are under way at once. Calls that overlap collide in the budget's status,
// which both write, and then the API server sleeps for half a second in one of them: many at once cost it more and are no
// sooner. Of two, one goes on meanwhile, and whoever replaces the pods has several to count at a time: with one alone the
// controllers write the status of ReplicaSets and Deployments nearly twice as often, and all takes longer (docs/scale.md).
const abreast = 2

// slowCall is how long a call keeps those behind it waiting: a sleep of the API server's, but a webhook may take what time
// it likes.
const slowCall = time.Second

// lanes let the pods behind one budget go a few at a time, over all nodes: evictions that share a budget
// hold each other up inside the API server, and what it answers to one of them holds for all.
type lanes struct {
	calls  *calls
	clock  clock.PassiveClock
	latest func(*policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget // a budget as it is by now

	mu       sync.Mutex
	byBudget map[types.UID]*lane
	byNode   map[string]map[*ticket]*lane // those that wait
}

// lane is the queue behind one budget.
type lane struct {
	budget  *policyv1.PodDisruptionBudget // as last seen
	waiting []*ticket
	holding int // calls under way that those behind wait for

	granted map[string]time.Time // when which pods were, as far as budget does not show it; zero: under way
	asked   time.Time            // when the last one was admitted; zero before the first
	moved   time.Time            // when one was accepted last
	refused string               // the version of the budget that refused the last one answered; empty if it was not refused
}

// ticket is one pod's place in a lane.
type ticket struct {
	call

	node    string
	pod     *corev1.Pod
	rests   func() // called when the pod waits for the budget, not only for calls under way
	version string // of the budget when the call was admitted
	holds   bool
}

// unseen is how long a granted eviction may take to show in the copy of its budget.
const unseen = time.Second

func newLanes(c *calls, clock clock.PassiveClock, latest func(*policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget) *lanes {
	return &lanes{calls: c, clock: clock, latest: latest, byBudget: map[types.UID]*lane{}, byNode: map[string]map[*ticket]*lane{}}
}

// add puts a pod's call behind the others of that budget, which may have changed since the caller read it.
func (l *lanes) add(b *policyv1.PodDisruptionBudget, t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b = l.latest(b) // under the lock: what changes from here on see brings
	at := l.byBudget[b.UID]
	if at == nil {
		at = &lane{budget: b, granted: map[string]time.Time{}}
		l.byBudget[b.UID] = at
	}
	at.see(b)
	at.waiting = append(at.waiting, t)
	if l.byNode[t.node] == nil {
		l.byNode[t.node] = map[*ticket]*lane{}
	}
	l.byNode[t.node][t] = at
	l.advance(at)
}

// leave takes a ticket out of its lane, where it is the i-th.
func (l *lanes) leave(at *lane, i int) *ticket {
	t := at.waiting[i]
	at.waiting = slices.Delete(at.waiting, i, i+1)
	if delete(l.byNode[t.node], t); len(l.byNode[t.node]) == 0 {
		delete(l.byNode, t.node)
	}
	return t
}

// advance admits the next calls of the lane, as far as it is open.
func (l *lanes) advance(at *lane) {
	now := l.clock.Now()
	for at.holding < abreast && len(at.waiting) > 0 && at.open(now) {
		l.admit(at, now)
	}
	if at.holding == 0 {
		for _, t := range at.waiting {
			t.rests()
		}
	}
}

// admit makes the next call of the lane.
func (l *lanes) admit(at *lane, now time.Time) {
	i := slices.IndexFunc(at.waiting, func(t *ticket) bool { return !l.calls.full(t.node) })
	t := l.leave(at, max(i, 0)) // one that need not wait for other calls of its node
	at.holding++
	at.granted[t.pod.Name] = time.Time{}
	at.asked = now
	t.holds, t.version = true, at.budget.ResourceVersion
	l.calls.add(t.node, call{run: func() { l.timed(at, t) }, dropped: t.dropped})
}

// timed makes the call of t, which holds the lane for a moment only.
func (l *lanes) timed(at *lane, t *ticket) {
	timer := time.AfterFunc(slowCall, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		at.free(t)
		l.advance(at)
	})
	defer timer.Stop()
	t.run()
}

// landed notes the answer to the call of t, and lets the next one go.
func (l *lanes) landed(b types.UID, t *ticket, got kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.byBudget[b]
	if at == nil {
		return
	}
	at.free(t)
	delete(at.granted, t.pod.Name)
	switch got {
	case accepted:
		at.refused, at.moved = "", l.clock.Now()
		if _, shown := at.budget.Status.DisruptedPods[t.pod.Name]; !shown {
			at.granted[t.pod.Name] = at.moved
		}
	case blocked:
		at.refused = t.version
	}
	l.advance(at)
}

// free lets the next call go before the answer to that of t has come.
func (at *lane) free(t *ticket) {
	if t.holds {
		t.holds = false
		at.holding--
	}
}

// see notes the budget as it is now.
func (at *lane) see(b *policyv1.PodDisruptionBudget) {
	at.budget = b
	for pod := range b.Status.DisruptedPods {
		delete(at.granted, pod)
	}
}

// open says whether an eviction may be posted: as far as the budget allows disruptions and, whatever our copy
// of it says, one if none was for a while.
func (at *lane) open(now time.Time) bool {
	return at.allows(now) || now.Sub(at.asked) >= RetryDelay
}

// allows says whether the budget would let one more pod go. One state of it is believed until it refuses.
func (at *lane) allows(now time.Time) bool {
	maps.DeleteFunc(at.granted, func(_ string, when time.Time) bool { return !when.IsZero() && now.Sub(when) >= unseen })
	b := at.budget
	return b.ResourceVersion != at.refused && b.Status.ObservedGeneration >= b.Generation &&
		int(b.Status.DisruptionsAllowed) > len(at.granted)
}

// blocks says whether the pods behind the budget are blocked, rather than on their way: it has refused an
// eviction and granted none since, or allows none and has granted none for a while.
func (at *lane) blocks(now time.Time) bool {
	return at.refused != "" || !at.allows(now) && now.Sub(at.moved) >= RetryDelay
}

// see notes how the budgets of a namespace stand, of which get returns those that exist, and lets go whom they
// allow to.
func (l *lanes) see(namespace string, get func(namespace, name string) (*policyv1.PodDisruptionBudget, bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, at := range l.byBudget {
		if at.budget.Namespace != namespace {
			continue
		}
		if b, ok := get(namespace, at.budget.Name); ok && b.UID == uid {
			at.see(b)
			l.advance(at)
		}
	}
}

// blocked says whether the pods behind that budget are blocked by it.
func (l *lanes) blocked(budget types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.byBudget[budget]
	return at != nil && at.blocks(l.clock.Now())
}

// retry tries again where a pod of node has waited long enough, and returns when to come back at the latest;
// 0 if none of them waits.
func (l *lanes) retry(node string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var next time.Duration
	now := l.clock.Now()
	for at := range l.lanesOf(node) {
		l.advance(at)
		due := RetryDelay
		if at.holding == 0 {
			due = max(at.asked.Add(RetryDelay).Sub(now), time.Millisecond)
		}
		if next == 0 || due < next {
			next = due
		}
	}
	return next
}

// lanesOf returns the lanes in which pods of node wait.
func (l *lanes) lanesOf(node string) map[*lane]bool {
	out := map[*lane]bool{}
	for _, at := range l.byNode[node] {
		out[at] = true
	}
	return out
}

// withdraw takes the pods of node for which leave says so out of their lanes, and drops their calls. The
// budget is the one that they wait behind.
func (l *lanes) withdraw(node string, leave func(pod, budget types.UID) bool) {
	var dropped []*ticket
	now := l.clock.Now()
	l.mu.Lock()
	for t, at := range l.byNode[node] {
		if leave(t.pod.UID, at.budget.UID) {
			dropped = append(dropped, l.leave(at, slices.Index(at.waiting, t)))
		}
	}
	for uid, at := range l.byBudget {
		if len(at.waiting) == 0 && at.holding == 0 && now.Sub(at.asked) >= RetryDelay { // what it knows is old
			delete(l.byBudget, uid)
		}
	}
	l.mu.Unlock()
	for _, t := range dropped {
		t.dropped()
	}
}
