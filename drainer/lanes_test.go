// SPDX-License-Identifier: Apache-2.0

package drainer_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/nodemaint/nodemaint/drainer"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// spread returns pods of one application on both nodes.
func spread(each int) []runtime.Object {
	out := web(each)
	for i := range each {
		out = append(out, mt.Pod("shop", fmt.Sprintf("web-%d", each+i), "n2", mt.Labels(app), mt.OfReplicaSet("web")))
	}
	return out
}

// inTurn watches both nodes behind a budget that allows so many disruptions.
func (s *stage) inTurn(allowed int) {
	s.watch("n1")
	s.watch("n2")
	s.AddBudget("shop", "web", app, 1)
	s.SetDisruptionsAllowed("shop", "web", allowed)
	synctest.Wait()
}

func TestPodsBehindABudgetGoAFewAtATime(t *testing.T) {
	onStage(t, mt.Options{Termination: mt.Never}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.inTurn(6)
		s.Delay(evictionOfPods, 10*time.Millisecond)
		var most atomic.Int64
		s.OnRequest(func(r mt.Request) error {
			if r.Subresource == "eviction" {
				most.Store(max(most.Load(), int64(len(s.InFlight(evictionOfPods)))))
			}
			return nil
		})
		s.pass("n1")
		s.pass("n2")
		advance(100 * time.Millisecond)
		require.Len(t, s.evictions(), 6, "as many as it allows, of both nodes, and none that would be refused")
		require.EqualValues(t, 2, most.Load())
		r := s.pass("n2")
		require.Empty(t, r.Blocked, "its pods go by and by: that is no block")
		require.Contains(t, r.Deferred[0].Reason, "waits for its turn")

		advance(drainer.RetryDelay)
		require.Len(t, s.pass("n2").Blocked, 4, "it has let nobody go for a while")
		require.Len(t, s.evictions(), 7, "the API server is asked, whatever our copy says")
		s.pass("n1")
		require.Len(t, s.evictions(), 7, "once for all that wait")
	}, spread(5)...)
}

func TestOneRefusalSpeaksForAllBehindTheBudget(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.inTurn(0)
		for range 12 {
			for _, node := range []string{"n1", "n2"} {
				r := s.settle(node)
				require.Len(t, r.Blocked, 5)
				require.Equal(t, "web", r.Blocked[0].Budgets[0].Name)
				require.LessOrEqual(t, r.RetryAfter, drainer.RetryDelay)
				require.Positive(t, r.RetryAfter)
			}
			advance(5 * time.Second)
		}
		require.Len(t, s.evictions(), 12, "not one for each pod")
		s.ClearRequests()
		s.SetDisruptionsAllowed("shop", "web", 3)
		synctest.Wait()
		require.Len(t, s.evictions(), 3, "at once, and without a pass")
	}, spread(5)...)
}

func TestSlowCallHoldsUpItsBudgetForAMoment(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.inTurn(9)
		hold := s.Hold(evictionOfPods.Named("shop", "web-0"))
		defer hold.Release()
		s.pass("n1")
		s.pass("n2")
		advance(time.Second)
		require.Len(t, s.evictions(), 9, "all that the budget allows, the slow one counted")
		require.Len(t, s.InFlight(evictionOfPods), 1)
	}, spread(5)...)
}

// sicken makes the pods that web made unready.
func (s *stage) sicken(n int) {
	for i := range n {
		s.EditPod("shop", fmt.Sprintf("web-%d", i), mt.NotReady())
	}
}

func TestUnreadyPodsWaitForABudgetThatCountsThem(t *testing.T) {
	spare := func(s *stage) {
		s.EditBudget("shop", "web", func(b *policyv1.PodDisruptionBudget) {
			b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
		})
	}
	for _, tt := range []struct {
		reason  string
		healthy int // that the budget wants
		before  func(s *stage)
		frees   func(s *stage)
	}{
		{"they are so from the beginning, and enough others are healthy", 1, func(s *stage) {
			s.Add(mt.Pod("shop", "other", "n2", mt.Labels(app)))
			s.sicken(20)
		}, func(*stage) {}},
		{"they become unready where the budget spares unready pods", 20, spare, func(s *stage) { s.sicken(20) }},
		{"their budget comes to spare unready pods", 30, func(s *stage) { s.sicken(20) }, spare},
		{"enough others become healthy", 1, func(s *stage) {
			s.Add(mt.Pod("shop", "other", "n2", mt.Labels(app), mt.NotReady()))
			s.sicken(20)
		}, func(s *stage) {
			s.EditPod("shop", "other", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue })
		}},
		{"they never ran", 20, func(*stage) {}, func(s *stage) {
			for i := range 20 {
				s.EditPod("shop", fmt.Sprintf("web-%d", i), mt.Phase(corev1.PodPending))
			}
		}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
				s.Enable(mt.BudgetStatus)
				s.watch("n1")
				s.AddBudget("shop", "web", app, tt.healthy)
				tt.before(s)
				s.settle("n1")
				s.ClearRequests()
				tt.frees(s)
				began := time.Now()
				for !s.settle("n1").Done() {
					advance(time.Second)
					require.LessOrEqual(t, time.Since(began), drainer.RetryDelay, "they go beside each other")
				}
				require.LessOrEqual(t, len(s.evictions()), 20, "each was asked once")
			}, web(20)...)
		})
	}
}

func TestLaneIsLeft(t *testing.T) {
	for _, tt := range []struct {
		reason string
		act    func(s *stage)
		posted []string // after that; in any order
	}{
		{"the budget goes", func(s *stage) { s.DeleteBudget("shop", "web") }, []string{"shop/web-0", "shop/web-1"}},
		{"the budget selects others", func(s *stage) {
			s.DeleteBudget("shop", "web")
			s.AddBudget("shop", "web", map[string]string{"app": "other"}, 1)
		}, []string{"shop/web-0", "shop/web-1"}},
		{"a pod goes by itself", func(s *stage) { s.RemovePod("shop", "web-1") }, []string{}},
		{"a pod is deleted by somebody", func(s *stage) { s.DeletePod("shop", "web-1") }, []string{}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
				s.inTurn(0)
				s.settle("n1")
				s.ClearRequests()
				tt.act(s)
				synctest.Wait()
				s.settle("n1")
				require.ElementsMatch(t, tt.posted, s.evictions())
			}, web(2)...)
		})
	}
	t.Run("its node is given back", func(t *testing.T) {
		onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
			s.inTurn(0)
			s.settle("n1")
			s.settle("n2")
			s.Cancel("n1")
			s.ClearRequests()
			s.SetDisruptionsAllowed("shop", "web", 10)
			synctest.Wait()
			require.Len(t, s.evictions(), 5, "the other node's only")
			require.Len(t, s.PodsOn("n1"), 5)
		}, spread(5)...)
	})
	t.Run("its watch ends", func(t *testing.T) {
		onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
			end := s.watch("n2")
			s.inTurn(0)
			s.settle("n1")
			s.settle("n2")
			end() // a later watch took its place
			s.ends[len(s.ends)-1]()
			synctest.Wait()
			s.ClearRequests()
			s.SetDisruptionsAllowed("shop", "web", 10)
			synctest.Wait()
			require.Len(t, s.evictions(), 5, "what it would learn nobody hears")
		}, spread(5)...)
	})
}

func TestNothingWaitsWhereBudgetsDoNotCount(t *testing.T) {
	for reason, o := range map[string]drainer.Options{
		"deleted from the start": {DisableEviction: true},
		"deleted later":          {DeleteAfter: 7 * time.Second},
	} {
		t.Run(reason, func(t *testing.T) {
			onStage(t, mt.Options{}, o, func(t *testing.T, s *stage) {
				s.inTurn(0)
				for range 3 {
					s.settle("n1")
					advance(5 * time.Second)
				}
				require.True(t, s.settle("n1").Done())
			}, web(3)...)
		})
	}
}
