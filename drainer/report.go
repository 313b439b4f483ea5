// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pod is where one pod stands.
type Pod struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
	// Reason says why the pod is still there, or why it stays: our words or the API server's.
	Reason string `json:"reason,omitempty"`
	// Budgets are the budgets that select a blocked pod.
	Budgets []Budget `json:"budgets,omitempty"`
	// Owner is the controller of a pod that came late, as "ReplicaSet shop/web"; empty for a pod that
	// was there when the drain began, or that nothing controls.
	Owner string `json:"owner,omitempty"`
	// Late says that the pod came after the drain began.
	Late bool `json:"late,omitempty"`
}

// Budget is a PodDisruptionBudget that blocks a pod, as it was last read.
type Budget struct {
	Name string `json:"name"`
	// Healthy is its status.currentHealthy, Desired its status.desiredHealthy, Allowed its
	// status.disruptionsAllowed.
	Healthy int32 `json:"healthy"`
	Desired int32 `json:"desired"`
	Allowed int32 `json:"allowed"`
}

// Report is what a pass found. Each pod of the node is in one of the first five lists, each of them
// sorted by name, then namespace.
type Report struct {
	// Leaving pods are on their way: terminating, or their eviction was accepted.
	Leaving []Pod `json:"leaving,omitempty"`
	// Blocked pods may not be disrupted now: by a budget, or by what Options keep.
	Blocked []Pod `json:"blocked,omitempty"`
	// Failed pods could not be evicted for another reason; the API server's words are in Reason.
	Failed []Pod `json:"failed,omitempty"`
	// Deferred pods must leave too: not posted yet, not answered yet, or asked to wait.
	Deferred []Pod `json:"deferred,omitempty"`
	// Staying pods do not leave: mirror pods and those of DaemonSets that exist.
	Staying []Pod `json:"staying,omitempty"`

	// Evicted pods are those whose eviction was accepted since the report before, and NewlyBlocked those
	// refused by a budget for the first time: what is worth a line in a log or an event.
	Evicted      []Pod `json:"-"`
	NewlyBlocked []Pod `json:"-"`
	// RetryAfter is when the next pass is due at the latest; 0 means only when something changes.
	RetryAfter time.Duration `json:"-"`
}

// Pending returns the pods still to leave, sorted by name, then namespace.
func (r Report) Pending() []Pod {
	pods := slices.Concat(r.Leaving, r.Blocked, r.Failed, r.Deferred)
	sortPods(pods)
	return pods
}

// Done says whether no pod is left that must leave.
func (r Report) Done() bool {
	return len(r.Leaving)+len(r.Blocked)+len(r.Failed)+len(r.Deferred) == 0
}

// Total returns the number of all pods found, staying ones included.
func (r Report) Total() int { return len(r.Pending()) + len(r.Staying) }

func sortPods(pods []Pod) {
	slices.SortFunc(pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
}

func (r *Report) sort() {
	for _, l := range [][]Pod{r.Leaving, r.Blocked, r.Failed, r.Deferred, r.Staying, r.Evicted, r.NewlyBlocked} {
		sortPods(l)
	}
}

// report sorts the pods into the lists of a Report and takes the news in them as told. Blocks says whether a
// budget blocks those that wait behind it.
func (m *memory) report(pods []judged, blocks func(budget types.UID) bool, now time.Time) Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := Report{Evicted: m.parted}
	m.parted = nil
	for _, j := range pods {
		p := podOf(j.pod)
		p.Reason = j.why
		switch j.fate {
		case stays:
			r.Staying = append(r.Staying, p)
		case kept:
			r.Blocked = append(r.Blocked, p)
		case unknown:
			r.Failed = append(r.Failed, p)
		case leaves:
			m.sort(&r, j.pod, blocks, now)
		}
	}
	m.noteLeaving(r, now)
	m.blocked.Store(len(r.Blocked) > 0)
	r.RetryAfter = m.wait(pods, now)
	r.sort()
	return r
}

// sort puts a pod that must leave where it belongs. While a call is under way the last answer stands,
// so that a pod that is tried again does not seem freed meanwhile.
func (m *memory) sort(r *Report, pod *corev1.Pod, blocks func(budget types.UID) bool, now time.Time) {
	a := m.attempts[pod.UID]
	if a == nil {
		return // a pass that began later found it gone
	}
	p := a.pod
	if a.news && a.answer.kind == accepted {
		r.Evicted = append(r.Evicted, p)
	}
	a.news = false
	if pod.DeletionTimestamp != nil {
		p.Reason = "terminating"
		r.Leaving = append(r.Leaving, p)
		return
	}
	switch {
	case a.answer.kind == gone:
	case a.answer.kind == going:
		p.Reason = "terminating"
		r.Leaving = append(r.Leaving, p)
	case a.answer.kind == accepted:
		p.Reason = "evicted"
		r.Leaving = append(r.Leaving, p)
	case a.answer.kind == ending:
		p.Reason = a.answer.words
		r.Leaving = append(r.Leaving, p)
	case a.answer.kind == blocked, a.tangled != "", a.queued() && (a.told || blocks(a.behind)):
		p.Reason, p.Budgets = a.reason(), numbers(a.budgets)
		r.Blocked = append(r.Blocked, p)
		if !a.told {
			a.told = true
			r.NewlyBlocked = append(r.NewlyBlocked, p)
		}
	case a.answer.kind == throttled, a.answer.kind == stale, a.answer.kind == brokenOff:
		if a.answer.kind == throttled || a.stale > 1 {
			p.Reason = a.answer.words
		}
		r.Deferred = append(r.Deferred, p)
	case a.answer.kind == unasked:
		switch p.Reason = m.brakeReason(a, now); {
		case a.last:
			p.Reason = "leaves after all others"
		case a.queued():
			p.Reason = "waits for its turn: of the pods behind its budget two go at a time"
		}
		r.Deferred = append(r.Deferred, p)
	default:
		p.Reason = a.answer.words
		r.Failed = append(r.Failed, p)
	}
}

// noteLeaving notes which pods have still to leave, and since when those that leave last are the only ones.
func (m *memory) noteLeaving(r Report, now time.Time) {
	pending := r.Pending()
	leaving := make(map[types.UID]bool, len(pending))
	for _, p := range pending {
		if a := m.attempts[p.UID]; a == nil || !a.last {
			leaving[p.UID] = true
		}
	}
	m.leaving.Store(&leaving)
	switch {
	case len(leaving) > 0 || len(pending) == 0:
		m.alone = time.Time{}
	case m.alone.IsZero():
		m.alone = now
	}
}

// brakeReason says why a late pod is not evicted yet; empty for any other.
func (m *memory) brakeReason(a *attempt, now time.Time) string {
	if !m.braked(a, now) {
		return ""
	}
	if _, storm := m.brake.due(a.owner); storm {
		return a.owner + " keeps putting pods on the node"
	}
	return "arrived after the drain began"
}

func podOf(p *corev1.Pod) Pod { return Pod{Namespace: p.Namespace, Name: p.Name, UID: p.UID} }

// ownerOf returns the controller of p as "Kind namespace/name", empty if there is none.
func ownerOf(p *corev1.Pod) string {
	if o := metav1.GetControllerOf(p); o != nil {
		return o.Kind + " " + p.Namespace + "/" + o.Name
	}
	return ""
}
