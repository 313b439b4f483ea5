// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBrake(t *testing.T) {
	start := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	type step struct {
		at      float64
		arrive  int // pods of owner
		evict   bool
		due     time.Time // after that
		isStorm bool
	}
	for _, tt := range []struct {
		reason string
		owner  string
		steps  []step
	}{
		{"the first is evicted at once, the next after five seconds", "ReplicaSet a/b", []step{
			{at: 0, arrive: 1, due: time.Time{}},
			{at: 0, evict: true, due: at(5)},
			{at: 1, arrive: 1, due: at(5)},
			{at: 5, evict: true, due: at(10)},
		}},
		{"more than five within a minute are a storm", "ReplicaSet a/b", []step{
			{at: 0, arrive: 5, evict: true, due: at(5)},
			{at: 59.9, arrive: 1, due: at(60), isStorm: true},
			{at: 60, evict: true, due: at(120), isStorm: true},
		}},
		{"six in a little more than a minute are none", "ReplicaSet a/b", []step{
			{at: 0, arrive: 5, evict: true, due: at(5)},
			{at: 60, arrive: 1, due: at(5)},
		}},
		{"a storm lasts while each eviction is answered by a pod", "ReplicaSet a/b", []step{
			{at: 0, arrive: 6, evict: true, due: at(60), isStorm: true},
			{at: 61, arrive: 1, evict: true, due: at(121), isStorm: true},
			{at: 121, arrive: 1, evict: true, due: at(181), isStorm: true},
		}},
		{"it is over after a calm of two minutes", "ReplicaSet a/b", []step{
			{at: 0, arrive: 6, evict: true, due: at(60), isStorm: true},
			{at: 120.1, arrive: 1, due: at(5)},
		}},
		{"pods without an owner do not come back by themselves", "", []step{
			{at: 0, arrive: 20, evict: true, due: at(5)},
		}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			var b brake
			for _, s := range tt.steps {
				for range s.arrive {
					b.arrived(tt.owner, at(s.at))
				}
				if s.evict {
					b.evicting(tt.owner, at(s.at))
				}
				due, storm := b.due(tt.owner)
				require.Equal(t, s.due, due, "at %v", s.at)
				require.Equal(t, s.isStorm, storm, "at %v", s.at)
			}
			due, storm := b.due("Job a/other")
			require.False(t, storm, "another owner's pods are not held up by a storm")
			require.LessOrEqual(t, due.Sub(start), 3*time.Minute)
		})
	}
}

// A node that is held for days sees the pods of many owners: each Job of a CronJob is another.
func TestBrakeForgetsWhoCameLongAgo(t *testing.T) {
	var b brake
	now := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	for i := range 1000 {
		b.arrived(fmt.Sprintf("Job a/b-%d", i), now)
		now = now.Add(time.Minute)
	}
	require.Len(t, b.owners, 3)
}
