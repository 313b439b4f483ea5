// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"sync"
	"time"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// Two writes of a status that can wait lie statusDelay apart, and all of them together are no more than one in
// statusShare: with many objects under way each is written more seldom, but not more than statusLimit apart.
const (
	statusDelay = time.Second
	statusShare = 300 * time.Millisecond
	statusLimit = time.Minute
)

// pace remembers when each object's status was written.
type pace struct {
	mu    sync.Mutex
	last  map[string]time.Time
	going map[string]bool // objects under way
}

func newPace() *pace { return &pace{last: map[string]time.Time{}, going: map[string]bool{}} }

func (p *pace) pause(name string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	delay := min(max(statusDelay, time.Duration(len(p.going))*statusShare), statusLimit)
	return p.last[name].Add(delay).Sub(now)
}

func (p *pace) wrote(name string, phase v1beta1.MaintenancePhase, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[name] = now
	if delete(p.going, name); phase == v1beta1.MaintenanceRunning {
		p.going[name] = true
	}
}

func (p *pace) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, name)
	delete(p.going, name)
}

// urgent says whether a status is written at once: for another phase, another lease status or count of
// failures, and when a drain becomes blocked.
func urgent(have, want v1beta1.NodeMaintenanceStatus) bool {
	return have.Phase != want.Phase || have.ErrorOnLeaseCount != want.ErrorOnLeaseCount ||
		reasonOf(have, v1beta1.ConditionLeaseHeld) != reasonOf(want, v1beta1.ConditionLeaseHeld) ||
		(reasonOf(want, v1beta1.ConditionDrained) == v1beta1.ReasonBlockedByBudget &&
			reasonOf(have, v1beta1.ConditionDrained) != v1beta1.ReasonBlockedByBudget)
}
