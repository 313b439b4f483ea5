// SPDX-License-Identifier: Apache-2.0

package drainer_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/drainer"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestBudgetBlocks(t *testing.T) {
	for _, mode := range []string{"listed", "watched"} {
		t.Run(mode, func(t *testing.T) {
			onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
				if mode == "watched" {
					s.watch("n1")
				}
				s.AddBudget("shop", "web", app, 1)
				s.AddBudget("shop", "other", map[string]string{"app": "other"}, 1)
				r := s.pass("n1")
				want := []drainer.Budget{{Name: "web", Healthy: 1, Desired: 1, Allowed: 0}}
				require.Equal(t, want, r.Blocked[0].Budgets)
				require.Empty(t, r.Blocked[0].Reason)
				require.Equal(t, r.Blocked, r.NewlyBlocked)
				require.Equal(t, []string{"shop/lone"}, names(r.Evicted))
				require.Equal(t, 5*time.Second, r.RetryAfter)

				for range 3 { // exactly every five seconds
					s.ClearRequests()
					advance(5*time.Second - time.Millisecond)
					r = s.pass("n1")
					require.Empty(t, s.evictions())
					require.Equal(t, want, r.Blocked[0].Budgets)
					require.Empty(t, r.NewlyBlocked)
					advance(time.Millisecond)
					require.Len(t, s.pass("n1").Blocked, 1)
					require.Equal(t, []string{"shop/web-0"}, s.evictions())
				}
				require.NotNil(t, s.Pod("shop", "web-0"), "nothing is deleted")
			}, append(web(1), mt.Pod("shop", "lone", "n1"))...)
		})
	}
}

func TestBudgetNegative(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.AddBudget("shop", "web", app, 1)
		s.EditBudget("shop", "web", func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = -1 })
		r := s.pass("n1")
		require.Equal(t, "web", r.Blocked[0].Budgets[0].Name, "a 403 with the budget's cause")
	}, web(1)...)
}

func TestBudgetFrees(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.AddBudget("shop", "web", app, 5)
		require.Len(t, s.settle("n1").Blocked, 5)

		for n := 5; n > 1; n -= 2 {
			s.ClearRequests()
			advance(time.Millisecond)
			s.SetDisruptionsAllowed("shop", "web", 2)
			s.settle("n1")
			require.Len(t, s.evictions(), 2, "at once, and only as many as are allowed")
			advance(drainer.NewsDelay)
			require.Len(t, s.settle("n1").Blocked, n-2)
			require.Empty(t, s.Matching(mt.Reads()), "all that is known from watches")
		}
		s.ClearRequests()
		s.DeleteBudget("shop", "web")
		require.True(t, s.settle("n1").Done(), "the budget is gone")
		require.Len(t, s.evictions(), 1)
	}, web(5)...)
}

func TestBudgetFreesNoMoreThanItAllows(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.AddBudget("shop", "web", app, 3)
		s.pass("n1")
		advance(time.Second)
		hold := s.Hold(evictionOfPods)
		s.ClearRequests()
		s.SetDisruptionsAllowed("shop", "web", 1)
		synctest.Wait()
		s.pass("n1")
		require.Len(t, s.evictions(), 1)
		s.pass("n1")
		require.Len(t, s.evictions(), 1, "one is on its way: what it takes is no longer free")
		hold.Release()
	}, web(3)...)

	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.AddBudget("shop", "web", app, 2)
		s.pass("n1")
		s.ClearRequests()
		advance(time.Second)
		// The budget says one, but has not seen its new spec yet.
		s.SetDisruptionsAllowed("shop", "web", 1)
		s.EditBudget("shop", "web", func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable.IntVal = 1 })
		s.settle("n1")
		require.LessOrEqual(t, len(s.evictions()), 1, "one state of a budget is tried once")
	}, web(2)...)
}

func TestBudgetWatchBreaks(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.AddBudget("shop", "web", app, 1)
		r := s.settle("n1")
		want := r.Blocked
		s.Fail(mt.On("watch", "poddisruptionbudgets"), nil)
		s.Fail(mt.On("list", "poddisruptionbudgets"), nil)
		s.ClearRequests()
		s.CloseWatches("poddisruptionbudgets")
		r = s.settle("n1")
		require.Empty(t, s.evictions(), "what is not known frees nobody")
		require.Equal(t, want, r.Blocked, "the numbers stand as last read")

		advance(5 * time.Second)
		began := time.Now()
		require.Len(t, s.pass("n1").Blocked, 1)
		require.LessOrEqual(t, time.Since(began), 2*drainer.AnswerWait)
	}, web(1)...)
}

func TestRefusedForABudgetThatIsNotKnown(t *testing.T) {
	for _, tt := range []struct {
		reason string
		refuse func(s *stage)
	}{
		{"a webhook answers as a budget does", func(s *stage) {
			s.Fail(evictionOfPods, answered(http.StatusTooManyRequests, "not now", policyv1.DisruptionBudgetCause))
		}},
		{"the watch of the budgets is late", func(s *stage) {
			s.PauseWatches("poddisruptionbudgets")
			s.Then(mt.On("list", "poddisruptionbudgets"), func() { s.AddBudget("shop", "web", app, 1) }).Times(1)
		}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
				s.watch("n1")
				tt.refuse(s)
				r := s.settle("n1")
				require.Equal(t, map[string]string{"shop/web-0": "blocked"}, where(r))
				require.Len(t, s.evictions(), 1)
				require.Equal(t, drainer.RetryDelay, r.RetryAfter)
				s.ResumeWatches("poddisruptionbudgets")
			}, web(1)...)
		})
	}
}

func TestBudgetsCannotBeRead(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.Fail(mt.On("watch", "poddisruptionbudgets"), nil)
		s.Fail(mt.On("list", "poddisruptionbudgets"), nil)
		for _, ns := range []string{"a", "b", "c"} {
			s.Add(mt.Pod(ns, "web", "n1", mt.Labels(app)))
			s.AddBudget(ns, "web", app, 1)
		}
		advance(time.Millisecond)
		began := time.Now()
		r := s.pass("n1")
		require.Len(t, r.Blocked, 3)
		require.Contains(t, r.Blocked[0].Reason, "violate the pod's disruption budget", "the server's words")
		require.LessOrEqual(t, time.Since(began), drainer.AnswerWait, "the wait is for all of them together")
	})
}

func TestTwoBudgets(t *testing.T) {
	two := func(s *stage) {
		s.AddBudget("shop", "a", app, 0)
		s.AddBudget("shop", "b", app, 0)
	}
	for _, mode := range []string{"listed", "watched"} {
		t.Run(mode, func(t *testing.T) {
			onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
				if mode == "watched" {
					s.watch("n1")
				}
				two(s)
				r := s.settle("n1")
				require.Equal(t, map[string]string{"shop/web-0": "blocked"}, where(r))
				require.Equal(t, "2 budgets select it, and the API server evicts no such pod", r.Blocked[0].Reason)
				require.Equal(t, "a", r.Blocked[0].Budgets[0].Name)
				require.Equal(t, "b", r.Blocked[0].Budgets[1].Name)
				require.Len(t, s.evictions(), 1)

				for waited := time.Duration(0); waited < time.Minute-time.Millisecond; {
					pause := min(s.pass("n1").RetryAfter, time.Minute-time.Millisecond-waited)
					advance(pause)
					waited += pause
					s.pass("n1")
					require.Len(t, s.evictions(), 1, "not before a minute is over, but tried again after %s", waited)
				}
				advance(time.Millisecond)
				require.Len(t, s.pass("n1").Blocked, 1)
				require.Len(t, s.evictions(), 2)
			}, web(1)...)
		})
	}
	t.Run("the set changes", func(t *testing.T) {
		onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
			s.watch("n1")
			two(s)
			s.settle("n1")
			s.SetDisruptionsAllowed("shop", "a", 0)
			s.settle("n1")
			require.Len(t, s.evictions(), 1, "its numbers change nothing")
			s.DeleteBudget("shop", "a")
			require.True(t, s.settle("n1").Done(), "at once")
			require.Len(t, s.evictions(), 2)
		}, web(1)...)
	})
	t.Run("the set changes while another call is slow", func(t *testing.T) {
		onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
			s.watch("n1")
			two(s)
			hold := s.Hold(evictionOfPods.Named("shop", "slow"))
			defer hold.Release()
			s.pass("n1")
			advance(time.Millisecond)
			s.Delay(evictionOfPods.Named("shop", "web-0"), time.Nanosecond)
			s.DeleteBudget("shop", "b")
			s.settle("n1")
			require.Nil(t, s.Pod("shop", "web-0"))
		}, append(web(1), mt.Pod("shop", "slow", "n1"))...)
	})
	t.Run("500 for another reason", func(t *testing.T) {
		onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
			s.watch("n1")
			s.AddBudget("shop", "a", app, 0)
			s.Fail(evictionOfPods, answered(500, "etcd is sad", "")).Times(1)
			r := s.settle("n1")
			require.Equal(t, map[string]string{"shop/web-0": "failed"}, where(r), "one budget is none too many")
			advance(5 * time.Second)
			s.pass("n1")
			require.Nil(t, s.Pod("shop", "web-0"))
		}, web(1)...)
	})
}

func TestBudgetCopiesEnd(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		end1, end2 := s.watch("n1"), s.watch("n2")
		s.Add(mt.Pod("shop", "web-9", "n2", mt.Labels(app)))
		s.AddBudget("shop", "web", app, 2)
		s.settle("n1")
		s.settle("n2")
		require.Equal(t, 1, s.Watches("poddisruptionbudgets"), "one for all nodes and pods of a namespace")
		require.Equal(t, 1, s.Watches("daemonsets"))
		require.Equal(t, 2, s.Watches("pods"))
		end1()
		advance(time.Second)
		require.Equal(t, 1, s.Watches("poddisruptionbudgets"))
		s.RemovePod("shop", "web-9")
		s.settle("n2")
		advance(time.Second)
		require.Zero(t, s.Watches("poddisruptionbudgets"), "nothing is blocked any more")
		end2()
		advance(time.Second)
		require.Zero(t, s.Watches("*"))
	}, web(1)...)
}

func TestBudgetSelectorThatDoesNotParse(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		b := mt.Budget("shop", "odd", nil, 1)
		b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Odd"}}}
		s.Add(b)
		s.AddBudget("shop", "web", app, 1)
		r := s.settle("n1")
		require.Len(t, r.Blocked[0].Budgets, 1, "it selects nothing")
	}, web(1)...)
}
