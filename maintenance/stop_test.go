// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
	"github.com/nodemaint/nodemaint/taint"
)

func TestStopTouchesNothingOfOthers(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.EditNode("n1", func(n *corev1.Node) {
			n.Spec.Unschedulable, n.Spec.Taints = true, []corev1.Taint{taint.Drain()}
			n.Labels = map[string]string{maintenance.ExcludeLabel: "true"}
		})
		require.Zero(t, s.stop(), "without a record nothing is known to be ours")
		require.Empty(t, s.Writes())
	})
	onStage(t, func(t *testing.T, s *stage) {
		s.until(maintenance.State{}, maintenance.Succeeded)
		s.steal()
		require.True(t, s.stop().Uncordoned, "what the record says is ours is given back")
		require.Equal(t, "them", *s.Lease(leaseNS, "node-n1").Spec.HolderIdentity, "the lease is theirs")
	})
	onStage(t, func(t *testing.T, s *stage) {
		s.until(maintenance.State{}, maintenance.Succeeded)
		s.EditNode("n1", func(n *corev1.Node) {
			n.Labels[maintenance.ExcludeLabel] = "mine"
			n.Spec.Taints[0].Value = "mine"
		})
		s.stop()
		n := s.Node("n1")
		require.Equal(t, "mine", n.Labels[maintenance.ExcludeLabel])
		require.Equal(t, "mine", n.Spec.Taints[0].Value, "what somebody changed meanwhile is his")
		require.False(t, n.Spec.Unschedulable)
	})
}

func TestStopWithAnUnreadableRecord(t *testing.T) {
	for _, tt := range []struct {
		reason string
		holder string        // of the lease; empty for none
		age    time.Duration // of its last renewal
		undone bool
	}{
		{"the lease is ours", "node-maintenance", 0, true},
		{"nobody's", "", 0, true},
		{"another's, run out", "them", 2 * time.Hour, true},
		{"another's: it may be all his", "them", 0, false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				if tt.holder != "" {
					s.Add(leaseOf(tt.holder, time.Now().Add(-tt.age)))
				}
				s.EditNode("n1", func(n *corev1.Node) {
					n.Annotations = map[string]string{maintenance.RecordAnnotation: "{{{"}
					n.Spec.Taints = []corev1.Taint{taint.Drain()}
				})
				restored := s.stop()
				require.Equal(t, tt.undone, restored.Incomplete)
				require.Equal(t, !tt.undone, taint.Has(s.Node("n1").Spec.Taints, taint.Drain()))
				require.Equal(t, !tt.undone, s.Node("n1").Annotations[maintenance.RecordAnnotation] != "")
			})
		})
	}
}

// TestMayBeTheirs has another take the lease and write a record that we cannot read, before we give the node back
// or while we do. It may be all his then, and nothing is changed.
func TestMayBeTheirs(t *testing.T) {
	for _, end := range []string{"a Stop", "giving up"} {
		for _, when := range []string{"before", "during"} {
			t.Run(end+", "+when, func(t *testing.T) {
				onStage(t, func(t *testing.T, s *stage) {
					state := s.until(maintenance.State{}, maintenance.Succeeded)
					s.steal()
					var theirs string
					take := func() {
						s.EditNode("n1", func(n *corev1.Node) {
							n.Annotations[maintenance.RecordAnnotation] = `{"v":2,"holder":"them"}`
						})
						theirs = looks(s.Node("n1"))
					}
					if when == "before" {
						take()
					} else {
						s.Then(mt.On("patch", "nodes"), take).Times(1)
					}
					if end == "a Stop" {
						require.Zero(t, s.stop())
					} else {
						state.Record = nil // whose caller cannot keep it
						state = s.until(state, maintenance.Failed)
						require.Equal(t, maintenance.LeaseLost, state.Failure)
					}
					require.NotEmpty(t, theirs)
					require.Equal(t, theirs, looks(s.Node("n1")))
					require.NotContains(t, s.steps, maintenance.RestoreIncomplete)
				})
			})
		}
	}
}

// TestStopForgets has a Stop end a maintenance that it finds nothing of on the node: the next one begins as the first.
func TestStopForgets(t *testing.T) {
	t.Run("that marks were put back on a node that is gone", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			for range 2 {
				state := s.until(maintenance.State{}, maintenance.Succeeded)
				s.EditNode("n1", foreign[maintenance.MarkCordon])
				require.Equal(t, []maintenance.Mark{maintenance.MarkCordon}, s.start(state).Reheld)
				s.DeleteNode("n1")
				s.stop()
				s.Add(mt.Node("n1"))
			}
		})
	})
	t.Run("that we had the lease of a node that may be another's", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			s.until(maintenance.State{}, maintenance.Succeeded)
			s.steal()
			s.EditNode("n1", func(n *corev1.Node) { n.Annotations[maintenance.RecordAnnotation] = "{{{" })
			require.Zero(t, s.stop())
			s.Fail(mt.On("get", "leases"), apierrors.NewForbidden(coordinationv1.Resource("leases"), "node-n1", nil))
			s.ClearRequests()
			state := s.start(maintenance.State{})
			require.Equal(t, maintenance.LeaseRefused, state.Lease)
			require.False(t, state.Looked, "whose it is now is not known")
			require.Empty(t, s.Writes())
		})
	})
}

// TestStopDuringStart stops at each write of a Start, and during an eviction.
func TestStopDuringStart(t *testing.T) {
	for n := 1; n <= 6; n++ { // lease, namespace, lease, record, marks, eviction
		t.Run(fmt.Sprintf("write %d", n), func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				s.watch()
				before := looks(s.Node("n1"))
				hold := s.HoldWrite(n)
				var wg sync.WaitGroup
				wg.Go(func() {
					_, err := s.Start(t.Context(), "n1", maintenance.State{})
					require.ErrorIs(t, err, maintenance.ErrStopped)
				})
				<-hold.Hit()
				began := time.Now()
				s.stop()
				require.Less(t, time.Since(began), time.Second)
				wg.Wait()
				advance(time.Minute)
				require.Equal(t, before, looks(s.Node("n1")))
				require.Nil(t, s.Lease(leaseNS, "node-n1"))
				require.NotNil(t, s.Pod("shop", "web-0"), "and nothing more is evicted")
				require.Empty(t, s.InFlight(nil))
			}, webPod())
		})
	}
}

// A write that a Stop breaks off may take effect all the same, and later. The Stop waits for its answer, so that it gives back what
// that has done.
func TestStopWaitsForTheAnswerToAWrite(t *testing.T) {
	for _, what := range []mt.Match{mt.On("patch", "nodes"), mt.On("create", "leases")} {
		onStage(t, func(t *testing.T, s *stage) {
			before := looks(s.Node("n1"))
			s.Add(mt.Namespace(leaseNS))
			hold := s.Hold(what)
			var wg sync.WaitGroup
			wg.Go(func() {
				_, err := s.Start(t.Context(), "n1", maintenance.State{})
				require.ErrorIs(t, err, maintenance.ErrStopped)
			})
			<-hold.Hit()
			s.ClearRequests()
			wg.Go(func() {
				_, err := s.Stop(t.Context(), "n1")
				require.NoError(t, err)
			})
			synctest.Wait()
			require.Empty(t, s.Requests(), "it looks at nothing yet")

			hold.Release()
			wg.Wait()
			require.Equal(t, before, looks(s.Node("n1")))
			require.Nil(t, s.Lease(leaseNS, "node-n1"))
		})
	}
}

func TestStopDuringABlockedDrain(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.watch()
		s.AddBudget("shop", "web", app, 1)
		s.Hold(mt.On("create", "pods/eviction").Named("slow", ""))
		state := s.start(maintenance.State{})
		require.Len(t, state.Report.Blocked, 1)
		require.Len(t, s.InFlight(mt.On("create", "pods/eviction")), 1)
		s.ClearRequests()
		began := time.Now()
		require.True(t, s.stop().Uncordoned)
		require.Less(t, time.Since(began), 3*time.Second)
		s.DeleteBudget("shop", "web")
		advance(time.Minute)
		require.Empty(t, s.Matching(mt.On("create", "pods/eviction")))
		require.Len(t, s.PodsOn("n1"), 2)
	}, webPod(), mt.Pod("slow", "db", "n1"))
}

func TestStopGoesFirst(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		hold := s.HoldWrite(1)
		var wg sync.WaitGroup
		for range 3 { // one works, two wait
			wg.Go(func() {
				_, err := s.Start(t.Context(), "n1", maintenance.State{})
				require.ErrorIs(t, err, maintenance.ErrStopped)
			})
		}
		<-hold.Hit()
		synctest.Wait()
		s.stop()
		wg.Wait()
		require.False(t, s.Node("n1").Spec.Unschedulable, "no Start that was called before the Stop works after it")
	})
	onStage(t, func(t *testing.T, s *stage) { // one that is called while a Stop works begins anew after it
		s.until(maintenance.State{}, maintenance.Succeeded)
		hold := s.Hold(mt.On("patch", "nodes"))
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := s.Stop(t.Context(), "n1")
			require.NoError(t, err)
		})
		<-hold.Hit()
		wg.Go(func() {
			_, err := s.Start(t.Context(), "n1", maintenance.State{})
			require.NoError(t, err)
		})
		synctest.Wait()
		hold.Release()
		wg.Wait()
		held(t, s.Node("n1"))
	})
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.until(maintenance.State{}, maintenance.Succeeded)
		hold := s.Hold(mt.On("patch", "nodes"))
		defer hold.Release()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { _, _ = s.Stop(t.Context(), "n1") })
		<-hold.Hit()
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(enough) })
		_, err := s.Stop(ctx, "n1")
		require.ErrorIs(t, err, enough)
		_, err = s.Start(ctx, "n1", maintenance.State{})
		require.ErrorIs(t, err, enough)
		hold.Release()
	})
}

// TestBusyWriter has another writer add and remove taints of its own all the time during start and stop.
func TestBusyWriter(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		var mine []corev1.Taint
		turn, every := 0, 0
		s.OnRequest(func(r mt.Request) error {
			if r.Resource != "nodes" || !r.Write() {
				return nil
			}
			if every++; every%4 == 0 { // now and then it is slower than we are
				return nil
			}
			turn++
			s.EditNode("n1", func(n *corev1.Node) {
				if turn%3 == 0 {
					n.Spec.Taints, _ = taint.Without(n.Spec.Taints, mine[0])
					mine = mine[1:]
				}
				add := corev1.Taint{Key: fmt.Sprintf("busy-%d", turn), Value: "v", Effect: corev1.TaintEffectNoExecute}
				n.Spec.Taints, mine = append(n.Spec.Taints, add), append(mine, add)
			})
			return nil
		})
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		held(t, s.Node("n1"))
		require.Empty(t, state.Reheld)
		for _, m := range mine {
			require.Contains(t, s.Node("n1").Spec.Taints, m)
		}
		s.stop()
		require.Equal(t, mine, s.Node("n1").Spec.Taints, "none is lost, none comes back, each in its place")
		require.Greater(t, turn, 8)
	})
}
