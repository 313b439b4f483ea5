// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"sync"
	"time"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// statusDelay is the time between two writes of a status that can wait.
const statusDelay = time.Second

// pace remembers when each object's status was written.
type pace struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func newPace() *pace { return &pace{last: map[string]time.Time{}} }

func (p *pace) pause(name string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[name].Add(statusDelay).Sub(now)
}

func (p *pace) wrote(name string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[name] = now
}

func (p *pace) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, name)
}

// urgent says whether a status is written at once: for another phase, another lease status or count of
// failures, and when a drain becomes blocked.
func urgent(have, want v1beta1.NodeMaintenanceStatus) bool {
	return have.Phase != want.Phase || have.ErrorOnLeaseCount != want.ErrorOnLeaseCount ||
		reasonOf(have, v1beta1.ConditionLeaseHeld) != reasonOf(want, v1beta1.ConditionLeaseHeld) ||
		(reasonOf(want, v1beta1.ConditionDrained) == v1beta1.ReasonBlockedByBudget &&
			reasonOf(have, v1beta1.ConditionDrained) != v1beta1.ReasonBlockedByBudget)
}
