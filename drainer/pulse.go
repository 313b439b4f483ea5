// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"slices"
	"time"
)

// A call that takes longer than others keeps those behind it waiting for slowLeast at least and slowMost at most.
// The API server sleeps for half a second when two writes of one budget's status collide, and while it is asleep the
// next call does not meet it. Under load it is a call like others that takes so long: a next one would collide with it
// and cost both, so what is slow depends on what is usual.
const (
	slowLeast = 200 * time.Millisecond
	slowMost  = time.Second
)

// pulse knows how long calls took of late. An API server under load answers slowly though nothing holds it up.
type pulse struct {
	took [15]time.Duration // the last ones, in no order
	next int
}

func (p *pulse) beat(took time.Duration) {
	p.took[p.next] = took
	p.next = (p.next + 1) % len(p.took)
}

// slow returns how long a call takes that something holds up: twice as long as is usual.
func (p *pulse) slow() time.Duration {
	sorted := slices.Sorted(slices.Values(p.took[:]))
	return min(max(2*sorted[len(sorted)/2], slowLeast), slowMost)
}
