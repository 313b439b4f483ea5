// SPDX-License-Identifier: Apache-2.0

package drainer_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/drainer"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestLatePods(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		require.True(t, s.settle("n1").Done())
		late := func(i int) {
			s.Add(mt.Pod("shop", fmt.Sprintf("late-%d", i), "n1", mt.OfReplicaSet("web")))
			synctest.Wait()
		}
		late(0)
		require.Equal(t, []string{"shop/late-0"}, names(s.pass("n1").Evicted), "the first at once")
		late(1)
		late(2)
		r := s.pass("n1")
		require.Empty(t, r.Evicted)
		require.Equal(t, 5*time.Second, r.RetryAfter)
		require.Equal(t, "arrived after the drain began", r.Deferred[0].Reason)
		require.Equal(t, "ReplicaSet shop/web", r.Deferred[0].Owner)
		require.True(t, r.Deferred[0].Late)
		advance(5*time.Second - time.Nanosecond)
		require.Empty(t, s.pass("n1").Evicted)
		advance(time.Nanosecond)
		require.Len(t, s.pass("n1").Evicted, 2, "a pass evicts all that are late by then")

		for i := range 3 { // six within a minute: a storm
			late(3 + i)
		}
		advance(5 * time.Second)
		require.Empty(t, s.pass("n1").Evicted)
		r = s.pass("n1")
		require.Equal(t, "ReplicaSet shop/web keeps putting pods on the node", r.Deferred[0].Reason)
		require.Equal(t, 55*time.Second, r.RetryAfter)
		s.Add(mt.Pod("shop", "lone", "n1"))
		synctest.Wait()
		require.Equal(t, []string{"shop/lone"}, names(s.pass("n1").Evicted), "others do not wait for a storm to end")
		advance(55 * time.Second)
		require.Len(t, s.pass("n1").Evicted, 3)
	})
}

func TestTemplateThatNamesTheNode(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		n := 0
		s.OnRequest(func(r mt.Request) error {
			if r.Subresource == "eviction" { // the ReplicaSet puts a new one there at once
				n++
				s.Add(mt.Pod("shop", fmt.Sprintf("again-%d", n), "n1", mt.OfReplicaSet("web")))
			}
			return nil
		})
		began := time.Now()
		for time.Since(began) < 10*time.Minute {
			r := s.settle("n1")
			require.False(t, r.Done())
			select {
			case <-s.wakes:
			case <-time.After(r.RetryAfter):
			}
		}
		require.InDelta(t, 16, len(s.evictions()), 2, "six in the first minute, then one a minute")
	}, web(1)...)
}

func TestLast(t *testing.T) {
	self := func(p *corev1.Pod) bool { return p.Name == "self" }
	onStage(t, mt.Options{Termination: mt.Never}, drainer.Options{Last: self}, func(t *testing.T, s *stage) {
		s.watch("n1")
		r := s.settle("n1")
		require.ElementsMatch(t, []string{"shop/web-0", "shop/web-1"}, s.evictions())
		require.Equal(t, "leaves after all others", r.Deferred[0].Reason)
		require.Zero(t, r.RetryAfter, "the others' end brings the next pass")
		s.FinishPod("shop", "web-0")
		s.settle("n1")
		s.FinishPod("shop", "web-1")
		r = s.settle("n1")
		require.Equal(t, []string{"shop/self"}, names(r.Pending()))
		require.Equal(t, drainer.LastDelay, r.RetryAfter, "once this is reported")
		advance(drainer.LastDelay - time.Millisecond)
		s.settle("n1")
		require.Len(t, s.evictions(), 2)
		advance(time.Millisecond)
		require.Equal(t, []string{"shop/self"}, names(s.pass("n1").Evicted))
	}, append(web(2), mt.Pod("shop", "self", "n1"))...)

	onStage(t, mt.Options{}, drainer.Options{Last: self}, func(t *testing.T, s *stage) {
		s.watch("n1")
		require.True(t, s.settle("n1").Done())
		advance(time.Hour)
		s.Add(mt.Pod("shop", "self", "n1"))
		synctest.Wait()
		r := s.pass("n1")
		require.Equal(t, map[string]string{"shop/self": "deferred"}, where(r), "one that comes late is reported first too")
		advance(r.RetryAfter)
		require.True(t, s.settle("n1").Done())
	})
}
