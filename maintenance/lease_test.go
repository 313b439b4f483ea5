// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/nodemaint/nodemaint/lease"
	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
	"github.com/nodemaint/nodemaint/taint"
)

func manager(s *stage, holder string) *lease.Manager {
	return lease.NewManager(s.Client(), holder, lease.Options{})
}

func leaseOf(holder string, renewed time.Time) *coordinationv1.Lease {
	stamp := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: leaseNS, Name: "node-n1"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: &stamp},
	}
}

// steal gives the lease of n1 to another.
func (s *stage) steal() {
	s.EditLease(leaseNS, "node-n1", func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity, l.Spec.RenewTime = ptr.To("them"), ptr.To(metav1.NowMicro())
	})
	synctest.Wait()
}

func (s *stage) recapture() {
	s.EditLease(leaseNS, "node-n1", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("node-maintenance") })
	synctest.Wait()
}

func TestLeaseHeldFromTheBeginning(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.Add(leaseOf("them", time.Now()))
		before := looks(s.Node("n1"))
		var state maintenance.State
		for began := time.Now(); time.Since(began) < 59*time.Minute+58*time.Second; advance(state.RetryAfter) {
			state = s.start(state)
			require.Equal(t, maintenance.Running, state.Phase)
			require.Equal(t, maintenance.LeaseHeldByAnother, state.Lease)
			require.Contains(t, state.Error, `held by "them"`)
			require.Zero(t, state.LeaseErrors, "the count stays 0")
			require.Equal(t, maintenance.LeaseRetry, state.RetryAfter)
			require.False(t, state.Progress.Recorded)
		}
		require.Empty(t, s.Writes())
		require.Empty(t, s.steps)
		require.Equal(t, maintenance.Restored{}, s.stop())
		require.Equal(t, before, looks(s.Node("n1")), "the other's node is not touched")
		require.Equal(t, "them", *s.Lease(leaseNS, "node-n1").Spec.HolderIdentity)

		state = s.start(state)
		require.Equal(t, maintenance.LeaseHeld, state.Lease, "expired: taken over")
		require.Empty(t, state.Error)
		require.Equal(t, []maintenance.Step{maintenance.Begin, maintenance.Succeed}, s.steps)
	})
	onStage(t, func(t *testing.T, s *stage) {
		s.Add(leaseOf("them", time.Now()))
		left := maintenance.State{Phase: maintenance.Succeeded, EverSucceeded: true}
		require.Equal(t, maintenance.Running, s.start(left).Phase, "nor does what an operator without records finished stay Succeeded")
	})
	onStage(t, func(t *testing.T, s *stage) {
		s.Add(leaseOf("them", time.Now().Add(-time.Hour+2*time.Second)))
		require.Equal(t, 2*time.Second, s.start(maintenance.State{}).RetryAfter, "when it expires, if that is sooner")
	})
}

func TestLeaseOfAHolderWithALongName(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.Add(leaseOf(strings.Repeat("them ", 50_000), time.Now()))
		state := s.start(maintenance.State{})
		require.Contains(t, state.Error, `is held by "them them`)
		require.Less(t, len(state.Error), 2000)
		require.Equal(t, state.Error, state.LeaseError)
	})
}

func TestLeaseLost(t *testing.T) {
	for _, phase := range []maintenance.Phase{maintenance.Running, maintenance.Succeeded} {
		t.Run(string(phase), func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				s.AddBudget("shop", "web", app, 1)
				s.watch()
				state := s.start(maintenance.State{})
				if phase == maintenance.Succeeded {
					s.DeleteBudget("shop", "web")
					synctest.Wait()
					state = s.until(state, phase)
				}
				s.steal()
				s.ClearRequests()
				var counted []time.Time
				for began := time.Now(); !state.Done(); {
					require.Less(t, time.Since(began), time.Minute)
					before := state.LeaseErrors
					state = s.start(state)
					require.LessOrEqual(t, state.LeaseErrors, before+1)
					if state.LeaseErrors > before {
						counted = append(counted, time.Now())
						require.Equal(t, time.Now(), state.Updated)
					}
					if !state.Done() {
						require.Equal(t, maintenance.Running, state.Phase)
						require.Equal(t, maintenance.LeaseTaken, state.Lease)
						require.Contains(t, state.Error, `held by "them"`)
						require.Empty(t, s.Writes(), "nothing is evicted after a failure, nothing given back before the last")
						advance(time.Second) // asked more often than it wants
					}
				}
				require.Len(t, counted, 4)
				for i := 1; i < 4; i++ {
					require.Equal(t, 5*time.Second, counted[i].Sub(counted[i-1]), "failures count five seconds apart")
				}
				require.Equal(t, maintenance.Failed, state.Phase)
				require.Equal(t, maintenance.LeaseLost, state.Failure)
				require.Equal(t, "maintenance failed: lease could not be extended after 4 attempts", state.Error)
				require.Equal(t, 4, state.LeaseErrors)
				require.Equal(t, []string{"-label", "-record taints -cordon"}, s.deeds())
				require.Equal(t, "them", *s.Lease(leaseNS, "node-n1").Spec.HolderIdentity, "a foreign lease is left alone")
				require.Equal(t, maintenance.Fail, s.steps[len(s.steps)-1])

				s.EditNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }) // an admin, since
				told := len(s.steps)
				s.ClearRequests()
				s.start(state)
				s.restart()
				s.start(state)
				require.Zero(t, s.stop())
				require.Empty(t, s.Writes(), "once: nobody touches the node any more")
				require.True(t, s.Node("n1").Spec.Unschedulable)
				require.Len(t, s.steps, told)
			}, webPod())
		})
	}
}

func TestLeaseLostAcrossARestart(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		s.steal()
		state = s.start(state)
		require.Equal(t, 1, state.LeaseErrors)
		for range 3 {
			s.restart()
			advance(time.Second)
			state = s.start(state)
			require.Equal(t, 1, state.LeaseErrors)
		}
		advance(2 * time.Second)
		require.Equal(t, 2, s.start(state).LeaseErrors)
		require.Equal(t, 1, s.start(maintenance.State{}).LeaseErrors, "without a state the record says that it had begun")
	})
}

func TestLeaseRegained(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		s.steal()
		for n := 1; n <= 3; n++ {
			state = s.start(state)
			require.Equal(t, n, state.LeaseErrors)
			advance(5 * time.Second)
		}
		s.recapture()
		state = s.start(state)
		require.Zero(t, state.LeaseErrors, "a success sets it to 0")
		require.Equal(t, maintenance.Succeeded, state.Phase)
		require.Empty(t, state.Error)
		require.Equal(t, []maintenance.Step{maintenance.Begin, maintenance.Succeed}, s.steps)
	})
}

func TestLeaseRefused(t *testing.T) {
	forbidden := apierrors.NewForbidden(coordinationv1.Resource("leases"), "node-n1", errors.New("no right"))
	refuse := func(s *stage) *mt.Rule {
		return s.Fail(func(r mt.Request) bool { return r.Resource == "leases" && r.Write() }, forbidden)
	}
	t.Run("while the last renewal counts nothing else changes", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			s.watch()
			state := s.until(maintenance.State{}, maintenance.Succeeded)
			rule := refuse(s)
			advance(20 * time.Minute)
			s.ClearRequests()
			for range 5 {
				state = s.start(state)
				require.Equal(t, maintenance.Succeeded, state.Phase)
				require.Equal(t, maintenance.LeaseRefused, state.Lease)
				require.Contains(t, state.Error, "no right")
				require.Zero(t, state.LeaseErrors)
				require.LessOrEqual(t, state.RetryAfter, 5*time.Second)
				advance(5 * time.Second)
			}
			s.Add(mt.Pod("shop", "late", "n1"))
			synctest.Wait()
			s.EditNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = false })
			synctest.Wait()
			state = s.until(s.start(state), maintenance.Succeeded)
			require.Nil(t, s.Pod("shop", "late"), "the node is ours and is held: late pods leave")
			require.True(t, s.Node("n1").Spec.Unschedulable)

			rule.Remove()
			state = s.start(state)
			require.Equal(t, maintenance.LeaseHeld, state.Lease, "it recovers when the right returns")
			require.Empty(t, state.Error)
		})
	})
	t.Run("once it has run out it is given up", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			state := s.until(maintenance.State{}, maintenance.Succeeded)
			refuse(s)
			began := time.Now()
			for !state.Done() {
				advance(max(state.RetryAfter, time.Second))
				state = s.start(state)
			}
			require.Equal(t, time.Hour+15*time.Second, time.Since(began).Truncate(5*time.Second))
			require.Equal(t, maintenance.LeaseLost, state.Failure)
			require.False(t, s.Node("n1").Spec.Unschedulable)
			require.Empty(t, s.record())
		})
	})
	t.Run("if there never was one it is a failure, and nothing is touched", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			before := looks(s.Node("n1"))
			refuse(s)
			state := s.start(maintenance.State{})
			require.Equal(t, 1, state.LeaseErrors)
			require.Equal(t, maintenance.LeaseRefused, state.Lease)
			state = s.until(state, maintenance.Failed)
			require.Equal(t, 4, state.LeaseErrors)
			require.Equal(t, before, looks(s.Node("n1")))
		})
	})
	t.Run("after a failure nothing goes on before a success", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			state := s.until(maintenance.State{}, maintenance.Succeeded)
			s.steal()
			state = s.start(state)
			s.recapture()
			advance(20 * time.Minute)
			rule := refuse(s)
			s.Add(mt.Pod("shop", "late", "n1"))
			state = s.start(state)
			require.Equal(t, 1, state.LeaseErrors)
			require.NotNil(t, s.Pod("shop", "late"))
			require.Equal(t, maintenance.LeaseRetry, state.RetryAfter)
			rule.Remove()
			require.Zero(t, s.start(state).LeaseErrors)
		})
	})
	t.Run("unreadable, and nothing is known: it waits", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			state := s.until(maintenance.State{}, maintenance.Succeeded)
			s.restart()
			s.Fail(mt.On("get", "leases"), forbidden)
			s.ClearRequests()
			for range 20 {
				state = s.start(state)
				require.Equal(t, maintenance.Succeeded, state.Phase)
				require.Equal(t, maintenance.LeaseRefused, state.Lease)
				advance(time.Minute)
			}
			require.Empty(t, s.Writes())
		})
	})
	t.Run("given up, our lapsed lease is deleted if it may be", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			state := s.until(maintenance.State{}, maintenance.Succeeded)
			s.Fail(mt.On("update", "leases"), forbidden)
			advance(time.Hour)
			state = s.until(state, maintenance.Failed)
			require.Nil(t, s.Lease(leaseNS, "node-n1"))
			require.Equal(t, maintenance.LeaseLost, state.Failure)
		})
	})
}

func TestLeaseNeverLapses(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		wakes := s.watch()
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		s.ClearRequests()
		for began := time.Now(); time.Since(began) < 3*time.Hour; {
			select {
			case <-wakes:
			case <-time.After(state.RetryAfter):
			}
			require.LessOrEqual(t, state.RetryAfter, time.Minute, "looked at once a minute")
			state = s.start(state)
			require.Equal(t, maintenance.Succeeded, state.Phase)
			require.Less(t, time.Since(s.Lease(leaseNS, "node-n1").Spec.RenewTime.Time), 21*time.Minute)
		}
		require.Len(t, s.Requests(), 9, "one update each third of its duration, and nothing else: %v", s.deeds())
		s.DeleteLease(leaseNS, "node-n1")
		synctest.Wait()
		<-wakes
		state = s.start(state)
		require.NotNil(t, s.Lease(leaseNS, "node-n1"), "gone although ours: created again")
		require.Zero(t, state.LeaseErrors)
	})
}

func TestFailureNotStoredTouchesNothingTwice(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		s.steal()
		for state.LeaseErrors < 3 {
			state = s.start(state)
			advance(5 * time.Second)
		}
		failed := s.start(state)
		require.True(t, failed.Done())
		s.EditNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true; n.Spec.Taints = []corev1.Taint{taint.Drain()} })
		synctest.Wait()
		before := looks(s.Node("n1"))
		s.restart() // before the failure was stored
		require.True(t, s.start(state).Done())
		require.Equal(t, before, looks(s.Node("n1")))
	})
}

// TestConflictIsNoLeaseFailure: that another writer is always faster is no reason to give the node back.
func TestConflictIsNoLeaseFailure(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		changed := apierrors.NewConflict(coordinationv1.Resource("leases"), "node-n1", errors.New("it has changed"))
		faster := s.Fail(func(r mt.Request) bool { return r.Resource == "leases" && r.Write() }, changed)
		advance(20 * time.Minute) // the lease is to be renewed
		for range 5 {
			next, err := s.Start(t.Context(), "n1", state)
			require.ErrorContains(t, err, "it has changed")
			require.Equal(t, failing(state, err), next)
			advance(maintenance.LeaseRetry)
		}
		require.True(t, s.Node("n1").Spec.Unschedulable)

		faster.Remove()
		state = s.start(state)
		require.Equal(t, maintenance.Succeeded, state.Phase)
		require.Zero(t, state.LeaseErrors)
	})
}
