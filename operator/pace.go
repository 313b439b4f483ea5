// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"sync"
	"time"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// Two writes of a status that can wait lie statusDelay apart, a little more after each, since what takes long
// changes slowly. All objects under way together are written once in statusShare at most: with many of them each
// is written more seldom, but not less than once in statusLimit.
const (
	statusDelay  = time.Second
	statusGrowth = 200 * time.Millisecond
	statusLong   = 5 * time.Second
	statusShare  = 500 * time.Millisecond
	statusLimit  = 2 * time.Minute
)

// pace remembers how each object's status was written.
type pace struct {
	mu     sync.Mutex
	writes map[string]writes
	going  map[string]bool // objects under way
}

// writes are those of one object's status.
type writes struct {
	last  time.Time
	count int
}

func newPace() *pace { return &pace{writes: map[string]writes{}, going: map[string]bool{}} }

// pause returns how long the next write of the object's status has to wait; not positive if it need not.
func (p *pace) pause(name string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.writes[name]
	own := min(statusDelay+time.Duration(w.count)*statusGrowth, statusLong)
	fleet := min(time.Duration(len(p.going))*statusShare, statusLimit)
	return w.last.Add(max(own, fleet)).Sub(now)
}

func (p *pace) wrote(name string, phase v1beta1.MaintenancePhase, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes[name] = writes{now, p.writes[name].count + 1}
	if delete(p.going, name); phase == v1beta1.MaintenanceRunning {
		p.going[name] = true
	}
}

func (p *pace) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.writes, name)
	delete(p.going, name)
}

// urgent says whether a status is written at once: for another phase, another lease status or count of
// failures, when a drain becomes blocked, and when only the operator's own pod is left, which leaves next.
func urgent(have, want v1beta1.NodeMaintenanceStatus, itself v1beta1.PodReference) bool {
	return have.Phase != want.Phase || have.ErrorOnLeaseCount != want.ErrorOnLeaseCount ||
		reasonOf(have, v1beta1.ConditionLeaseHeld) != reasonOf(want, v1beta1.ConditionLeaseHeld) ||
		(reasonOf(want, v1beta1.ConditionDrained) == v1beta1.ReasonBlockedByBudget &&
			reasonOf(have, v1beta1.ConditionDrained) != v1beta1.ReasonBlockedByBudget) ||
		(onlyLeft(want, itself) && !onlyLeft(have, itself))
}

// onlyLeft says whether no pod but that one is left to leave.
func onlyLeft(st v1beta1.NodeMaintenanceStatus, pod v1beta1.PodReference) bool {
	return len(st.PendingPodsRefs) == 1 && st.PendingPodsRefs[0] == pod
}
