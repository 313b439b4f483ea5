// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"maps"
	"slices"
	"time"
)

// The brake on pods that come after the drain began: a controller that puts each evicted pod back
// on the node at once would otherwise be driven round as fast as the API server allows.
const (
	// LateDelay is the time between passes that evict late pods.
	LateDelay = 5 * time.Second
	// StormDelay is the same for an owner whose pods keep coming.
	StormDelay = time.Minute
	// stormSize is how many pods of one owner may come within stormWindow before it is a storm.
	stormSize   = 5
	stormWindow = time.Minute
)

// brake remembers the late pods of one node and says when the next may be evicted.
type brake struct {
	last   time.Time // the last pass that evicted a late pod
	owners map[string]*arrivals
}

// arrivals are those of one owner.
type arrivals struct {
	recent  []time.Time // within stormWindow of the newest
	storm   bool
	evicted time.Time
}

// arrived notes that a late pod of owner was seen for the first time. Pods without an owner do not
// come back by themselves and make no storm.
func (b *brake) arrived(owner string, now time.Time) {
	if owner == "" {
		return
	}
	if b.owners == nil {
		b.owners = map[string]*arrivals{}
	}
	// A storm is over when no pod came for two of its delays: each eviction in a storm is answered
	// by new pods, so a shorter calm proves nothing.
	maps.DeleteFunc(b.owners, func(_ string, a *arrivals) bool {
		return now.Sub(a.recent[len(a.recent)-1]) > 2*StormDelay
	})
	a := b.owners[owner]
	if a == nil {
		a = &arrivals{}
		b.owners[owner] = a
	}
	a.recent = slices.DeleteFunc(a.recent, func(t time.Time) bool { return now.Sub(t) >= stormWindow })
	a.recent = append(a.recent, now)
	a.storm = a.storm || len(a.recent) > stormSize
}

// due returns when the next late pod of owner may be evicted, and whether its pods keep coming.
func (b *brake) due(owner string) (time.Time, bool) {
	var next time.Time
	if !b.last.IsZero() {
		next = b.last.Add(LateDelay)
	}
	a := b.owners[owner]
	if a == nil || !a.storm {
		return next, false
	}
	if calm := a.evicted.Add(StormDelay); calm.After(next) {
		next = calm
	}
	return next, true
}

// evicting notes that late pods of owner are evicted in the pass at now.
func (b *brake) evicting(owner string, now time.Time) {
	b.last = now
	if a := b.owners[owner]; a != nil {
		a.evicted = now
	}
}
