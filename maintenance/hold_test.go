// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
	"github.com/nodemaint/nodemaint/taint"
)

// foreign are changes of the marks by somebody else.
var foreign = map[maintenance.Mark]func(*corev1.Node){
	maintenance.MarkLabel:  func(n *corev1.Node) { delete(n.Labels, maintenance.ExcludeLabel) },
	maintenance.MarkTaint:  func(n *corev1.Node) { n.Spec.Taints, _ = taint.Without(n.Spec.Taints, taint.Drain()) },
	maintenance.MarkCordon: func(n *corev1.Node) { n.Spec.Unschedulable = false },
}

func held(t *testing.T, n *corev1.Node) {
	t.Helper()
	require.True(t, n.Spec.Unschedulable)
	require.True(t, taint.Has(n.Spec.Taints, taint.Drain()))
	require.Equal(t, "true", n.Labels[maintenance.ExcludeLabel])
}

func TestMarksAreHeld(t *testing.T) {
	for mark, takeOff := range foreign {
		for _, mode := range []string{"read", "watched"} {
			t.Run(string(mark)+", "+mode, func(t *testing.T) {
				onStage(t, func(t *testing.T, s *stage) {
					if mode == "watched" {
						s.watch()
					}
					before := looks(s.Node("n1"))
					state := s.until(maintenance.State{}, maintenance.Succeeded)
					s.EditNode("n1", takeOff)
					synctest.Wait()
					state = s.start(state)
					held(t, s.Node("n1"))
					require.Equal(t, []maintenance.Mark{mark}, state.Reheld, "at once, and it is news")
					require.Equal(t, maintenance.Succeeded, state.Phase, "which does not change the phase")

					news, began := 1, time.Now()
					for range 3 { // somebody insists
						put := time.Now()
						s.EditNode("n1", takeOff)
						synctest.Wait()
						state = s.start(state)
						require.Equal(t, maintenance.Succeeded, state.Phase)
						require.Equal(t, maintenance.HoldDelay, state.RetryAfter)
						s.ClearRequests()
						advance(state.RetryAfter - time.Millisecond)
						state = s.start(state)
						require.Empty(t, s.Writes(), "at most once in five seconds")
						advance(time.Millisecond)
						state = s.start(state)
						held(t, s.Node("n1"))
						require.Equal(t, maintenance.HoldDelay, time.Since(put))
						news += len(state.Reheld)
					}
					for time.Since(began) < 31*time.Minute {
						advance(30 * time.Second)
						s.EditNode("n1", takeOff)
						synctest.Wait()
						state = s.start(state)
						held(t, s.Node("n1"))
						news += len(state.Reheld)
					}
					require.Equal(t, 3, news, "news once in a quarter of an hour")
					s.stop()
					require.Equal(t, before, looks(s.Node("n1")))
				})
			})
		}
	}
}

func TestUnschedulableTaintIsNoMark(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.watch()
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		s.Disable(mt.UnschedulableTaint)
		s.EditNode("n1", func(n *corev1.Node) { n.Spec.Taints, _ = taint.Without(n.Spec.Taints, taint.Unschedulable()) })
		synctest.Wait()
		s.ClearRequests()
		for range 5 {
			state = s.start(state)
			require.Empty(t, state.Reheld)
			advance(time.Minute)
		}
		require.Empty(t, s.Requests(), "its absence is never a reason to write")
	})
}

func TestNotSucceededWhileAMarkIsMissing(t *testing.T) {
	for mark, takeOff := range foreign {
		t.Run(string(mark), func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				s.AddBudget("shop", "web", app, 1)
				state := s.start(maintenance.State{})
				s.EditNode("n1", takeOff)
				state = s.start(state)
				s.EditNode("n1", takeOff) // again, so that it has to wait
				s.DeleteBudget("shop", "web")
				s.RemovePod("shop", "web-0")
				state = s.start(state)
				require.Zero(t, state.Progress.Pending)
				require.Equal(t, maintenance.Running, state.Phase)
				cause, _ := state.Explain()
				require.Equal(t, maintenance.CauseDraining, cause)
				require.NotContains(t, s.steps, maintenance.Succeed)
				advance(state.RetryAfter)
				state = s.start(state)
				require.Equal(t, maintenance.Succeeded, state.Phase)
				held(t, s.Node("n1"))
			}, webPod())
		})
	}
}

func TestAdminLetsGo(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.EditNode("n1", func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Labels = map[string]string{maintenance.ExcludeLabel: "true"}
			n.Spec.Taints = []corev1.Taint{{Key: taint.DrainKey, Value: "x", Effect: corev1.TaintEffectNoSchedule}}
		})
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		require.JSONEq(t, `{"v":1,"holder":"node-maintenance","unschedulable":true,
			"taints":["medik8s.io/drain=x:NoSchedule","node.kubernetes.io/unschedulable:NoSchedule"],"label":"true","total":0,"eviction":0}`, s.record())
		s.EditNode("n1", func(n *corev1.Node) {
			n.Spec.Unschedulable = false
			n.Spec.Taints = nil
			n.Labels = map[string]string{maintenance.ExcludeLabel: "mine"}
		})
		s.ClearRequests()
		state = s.start(state)
		require.Equal(t, []string{"+record +label", "taints +cordon"}, s.deeds(), "the record says first that they are ours from now on")
		require.JSONEq(t, `{"v":1,"holder":"node-maintenance","unschedulable":false,"taints":[],"label":"mine","total":0,"eviction":0}`, s.record())
		require.Len(t, state.Reheld, 3)
		require.True(t, s.stop().Uncordoned)
		n := s.Node("n1")
		require.False(t, n.Spec.Unschedulable, "given back schedulable")
		require.Empty(t, n.Spec.Taints)
		require.Equal(t, "mine", n.Labels[maintenance.ExcludeLabel])
	})
}

func TestRecordIsLost(t *testing.T) {
	lose := func(text string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			if delete(n.Annotations, maintenance.RecordAnnotation); text != "" {
				n.Annotations = map[string]string{maintenance.RecordAnnotation: text}
			}
		}
	}
	for _, text := range []string{"", "{{{"} {
		onStage(t, func(t *testing.T, s *stage) {
			s.EditNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
			state := s.until(maintenance.State{}, maintenance.Succeeded)
			record := s.record()
			s.EditNode("n1", lose(text))
			s.ClearRequests()
			state = s.start(state)
			require.Equal(t, record, s.record(), "written again from the state")
			require.Equal(t, []string{"+record"}, s.deeds())
			require.Empty(t, state.Error)
			require.Empty(t, state.Reheld)
			require.False(t, s.stop().Uncordoned)
			require.True(t, s.Node("n1").Spec.Unschedulable)
		})
	}
	onStage(t, func(t *testing.T, s *stage) {
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		s.EditNode("n1", lose(""))
		state.Record = nil // a caller that cannot keep it
		s.start(state)
		require.NotEmpty(t, s.record(), "our lease and our taint: all of it is ours")
		require.True(t, s.stop().Uncordoned)
	})
	onStage(t, func(t *testing.T, s *stage) {
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		s.EditNode("n1", lose("{{{"))
		state.Record = nil
		s.ClearRequests()
		state = s.start(state)
		require.Equal(t, "{{{", s.record(), "what cannot be read is left")
		require.Equal(t, maintenance.Succeeded, state.Phase)
		require.Contains(t, state.Error, maintenance.ErrRecord.Error())
		require.Contains(t, state.Error, maintenance.RecordAnnotation)
		require.Nil(t, state.Record)
		require.Empty(t, s.Writes())

		restored := s.stop()
		require.True(t, restored.Incomplete)
		require.Equal(t, []string{"kubectl uncordon n1", "kubectl label node n1 remediation.medik8s.io/exclude-from-remediation-"}, restored.Commands)
		require.Equal(t, restored.Commands, s.told[len(s.told)-1].Commands)
		require.Equal(t, maintenance.RestoreIncomplete, s.told[len(s.told)-1].Step)
		n := s.Node("n1")
		require.True(t, n.Spec.Unschedulable, "the cordon stays")
		require.Len(t, n.Spec.Taints, 1)
		require.True(t, taint.Has(n.Spec.Taints, taint.Unschedulable()))
		require.Equal(t, "true", n.Labels[maintenance.ExcludeLabel])
		require.Empty(t, s.record())
		require.Nil(t, s.Lease(leaseNS, "node-n1"), "and the maintenance ends")
		require.Zero(t, s.stop())
	})
}

func TestStaleRecord(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		stale := `{"v":1,"holder":"node-maintenance","unschedulable":true,"taints":["medik8s.io/drain=x:NoSchedule"],"label":"true","total":9,"eviction":8}`
		s.EditNode("n1", func(n *corev1.Node) { n.Annotations = map[string]string{maintenance.RecordAnnotation: stale} })
		clean := s.Node("n1")
		clean.Annotations = nil
		before := looks(clean)
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		require.Equal(t, maintenance.Progress{Recorded: true}, state.Progress, "written anew, counts too")
		require.True(t, s.stop().Uncordoned)
		require.Equal(t, before, looks(s.Node("n1")))
	})
	onStage(t, func(t *testing.T, s *stage) { // every mark is taken off while it lasts
		s.EditNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		state := s.start(maintenance.State{})
		want := state.Progress
		s.EditNode("n1", func(n *corev1.Node) { n.Spec, n.Labels = corev1.NodeSpec{}, nil })
		state = s.start(state)
		held(t, s.Node("n1"))
		require.Len(t, state.Reheld, 3)
		want.Pending = 0
		require.Equal(t, want, state.Progress, "the counts never change")
		require.True(t, s.stop().Uncordoned)
	}, webPod())
}

func TestLaggingCopyHoldsNothingAgain(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.watch()
		s.PauseWatches("nodes")
		state := s.start(maintenance.State{})
		s.ClearRequests()
		state = s.start(state)
		require.Empty(t, s.Writes(), "the copy is from before our own writes")
		require.Empty(t, state.Reheld)
		require.Equal(t, maintenance.Succeeded, state.Phase)
		s.ResumeWatches("nodes")
		synctest.Wait()
		s.ClearRequests()
		s.start(state)
		require.Empty(t, s.Requests(), "an unchanged pass makes no request")
	})
}

func TestFailedHoldIsNews(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		s.EditNode("n1", foreign[maintenance.MarkCordon])
		fault := s.Fail(mt.On("patch", "nodes"), nil)
		_, err := s.Start(t.Context(), "n1", state)
		require.ErrorIs(t, err, mt.ErrInjected)
		fault.Remove()
		state = s.start(state)
		held(t, s.Node("n1"))
		require.Equal(t, []maintenance.Mark{maintenance.MarkCordon}, state.Reheld, "put back at once, once it can be")
	})
}

// TestHeldAgainIsToldOnce has the pass that puts marks back fail: the next one tells of it, and no other.
func TestHeldAgainIsToldOnce(t *testing.T) {
	for _, tt := range []struct {
		reason string
		befall func(s *stage) *mt.Rule
	}{
		{"the pods cannot be read", func(s *stage) *mt.Rule { return s.Fail(mt.On("list", "pods"), nil).Times(1) }},
		{"of the two writes the second fails", func(s *stage) *mt.Rule { return s.FailWrite(2, nil) }},
		{"the answer to the second is lost", func(s *stage) *mt.Rule { return s.LoseWrite(2, nil) }},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				state := s.until(maintenance.State{}, maintenance.Succeeded)
				s.EditNode("n1", foreign[maintenance.MarkCordon])
				s.EditNode("n1", foreign[maintenance.MarkLabel])
				s.ClearRequests()
				rule := tt.befall(s)
				failed, err := s.Start(t.Context(), "n1", state)
				require.ErrorIs(t, err, mt.ErrInjected)
				require.Equal(t, failing(state, err), failed)
				rule.Remove()
				var told []maintenance.Mark
				for range 5 {
					advance(10 * time.Second)
					state = s.start(state)
					told = append(told, state.Reheld...)
				}
				held(t, s.Node("n1"))
				require.ElementsMatch(t, []maintenance.Mark{maintenance.MarkCordon, maintenance.MarkLabel}, told)
			})
		})
	}
}
