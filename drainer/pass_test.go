// SPDX-License-Identifier: Apache-2.0

package drainer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodemaint/nodemaint/drainer"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestEmptyNode(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		for range 2 {
			r := s.pass("n1")
			require.True(t, r.Done())
			require.Zero(t, r.Total())
			require.Zero(t, r.RetryAfter)
			s.watch("n1")
		}
	})
}

func TestOneEvictionForAPod(t *testing.T) {
	onStage(t, mt.Options{Termination: mt.Never}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.DeletePod("shop", "web-1")
		synctest.Wait()
		r := s.settle("n1")
		require.Equal(t, map[string]string{"shop/web-0": "leaving", "shop/web-1": "leaving"}, where(r))
		for range 20 {
			advance(10 * time.Second)
			r = s.pass("n1")
			require.Zero(t, r.RetryAfter, "nothing is due: its end is an event")
			require.Equal(t, "terminating", r.Leaving[0].Reason)
		}
		require.Equal(t, []string{"shop/web-0"}, s.evictions(), "the terminating one never, the other once")
		s.Cancel("n1")
		s.pass("n1")
		require.Len(t, s.evictions(), 1, "nor after a restart")
	}, web(2)...)
}

// TestTerminatingPodWithoutAWatch: no copy of the pod is looked at once more before the call is made.
func TestTerminatingPodWithoutAWatch(t *testing.T) {
	onStage(t, mt.Options{Termination: mt.Never}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.DeletePod("shop", "web-1")
		for range 3 {
			require.Equal(t, map[string]string{"shop/web-0": "leaving", "shop/web-1": "leaving"}, where(s.pass("n1")))
			advance(10 * time.Second)
		}
		require.Equal(t, []string{"shop/web-0"}, s.evictions(), "the terminating one never, the other once")
	}, web(2)...)
}

func TestAcceptedBeforeTheWatchShowsIt(t *testing.T) {
	onStage(t, mt.Options{Termination: mt.Never}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.PauseWatches("pods")
		for range 5 {
			r := s.pass("n1")
			require.Equal(t, map[string]string{"shop/web-0": "leaving"}, where(r))
			require.Equal(t, "evicted", r.Leaving[0].Reason)
			advance(10 * time.Second)
		}
		require.Len(t, s.evictions(), 1)
		s.ResumeWatches("pods")
	}, web(1)...)
}

func TestUnchangedNodeCostsNothing(t *testing.T) {
	onStage(t, mt.Options{Termination: mt.Never}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.AddBudget("shop", "web", app, 1)
		s.settle("n1")
		s.ClearRequests()
		for range 10 {
			r := s.pass("n1")
			require.Equal(t, 3, len(r.Pending())+len(r.Staying))
		}
		require.Empty(t, s.Requests())
	}, append(web(1), mt.Pod("shop", "lone", "n1"), mt.Pod("shop", "agent-x", "n1", mt.OfDaemonSet("agent")), mt.DaemonSet("shop", "agent"))...)
}

func TestManyPods(t *testing.T) {
	onStage(t, mt.Options{Termination: 3 * time.Second}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.ClearRequests()
		s.Delay(evictionOfPods, 50*time.Millisecond)
		began := time.Now()
		r := s.settle("n1")
		for !r.Done() {
			<-s.wakes
			r = s.settle("n1")
		}
		require.Len(t, s.evictions(), 300)
		require.Len(t, s.Requests(), 302, "one request a pod, and the watch of their budgets")
		require.Less(t, time.Since(began), 10*time.Second)
	}, web(300)...)
}

func TestSlowCallHoldsUpNobody(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		hold := s.Hold(evictionOfPods.Named("shop", "web-0"))
		began := time.Now()
		r := s.pass("n1")
		require.Equal(t, drainer.WatchedWait, time.Since(began), "a pass waits for answers at most that long")
		require.Equal(t, "deferred", where(r)["shop/web-0"])
		require.Len(t, r.Evicted, 2)

		<-s.wakes // of the pods that went
		for range 5 {
			advance(time.Second)
			began = time.Now()
			require.Equal(t, map[string]string{"shop/web-0": "deferred"}, where(s.pass("n1")))
			require.Zero(t, time.Since(began), "a call under way is not waited for again")
		}
		require.Len(t, s.InFlight(evictionOfPods), 1, "one call at most for a pod")
		synctest.Wait()
		hold.Release()
		<-s.wakes
		synctest.Wait()
		r = s.pass("n1")
		require.Equal(t, []string{"shop/web-0"}, names(r.Evicted), "its answer wakes")
	}, web(3)...)
}

func TestCallTimesOut(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{Timeout: 10 * time.Second}, func(t *testing.T, s *stage) {
		s.watch("n1")
		hold := s.Hold(evictionOfPods)
		s.pass("n1")
		advance(10*time.Second - drainer.WatchedWait)
		r := s.settle("n1")
		require.Equal(t, map[string]string{"shop/web-0": "failed"}, where(r))
		require.Contains(t, r.Failed[0].Reason, "deadline")
		require.False(t, r.Done(), "a call that timed out proves nothing")
		hold.Release()
		advance(5 * time.Second)
		require.Len(t, s.pass("n1").Evicted, 1)
		require.Len(t, s.Matching(mt.On("get", "pods")), 1, "looked at first")
	}, web(1)...)
}

func TestSlowCallWithoutAWatch(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.Delay(evictionOfPods, 7*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		r, err := s.Pass(ctx, "n1")
		require.NoError(t, err)
		cancel() // the caller's context ends with its pass
		require.Equal(t, map[string]string{"shop/web-0": "deferred"}, where(r))
		require.Equal(t, drainer.RetryDelay, r.RetryAfter, "nothing will wake the caller")
		advance(r.RetryAfter)
		require.Len(t, s.pass("n1").Deferred, 1)
		advance(r.RetryAfter)
		require.True(t, s.pass("n1").Done(), "the call went on and was answered")
		require.Len(t, s.evictions(), 1)
	}, web(1)...)
}

func TestContextEndsInAPass(t *testing.T) {
	for _, mode := range []string{"listed", "watched"} {
		t.Run(mode, func(t *testing.T) {
			onStage(t, mt.Options{}, drainer.Options{MaxInFlight: 2}, func(t *testing.T, s *stage) {
				if mode == "watched" {
					s.watch("n1")
				}
				s.Hold(evictionOfPods)
				cause := errors.New("enough")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Millisecond, func() { cancel(cause) })
				_, err := s.Pass(ctx, "n1")
				require.ErrorIs(t, err, cause)
				synctest.Wait()
				if mode == "listed" {
					require.Empty(t, s.InFlight(nil), "its calls end with it")
					require.Len(t, s.evictions(), 1, "and none begins")
				}
			}, web(5)...)
		})
	}
}

func TestContextEndedBeforeAPass(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(enough)
		for range 20 {
			_, err := s.Pass(ctx, "n1")
			require.ErrorIs(t, err, enough)
		}
		synctest.Wait()
		require.Empty(t, s.evictions())
	}, web(3)...)
}

func TestCancel(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{MaxInFlight: 4}, func(t *testing.T, s *stage) {
		s.Cancel("n1") // nothing to cancel
		s.watch("n1")
		s.Hold(evictionOfPods)
		s.pass("n1")
		require.Len(t, s.InFlight(evictionOfPods), 2)

		s.Cancel("n1")

		require.Empty(t, s.InFlight(evictionOfPods), "it returns when they have ended")
		advance(time.Minute)
		require.Len(t, s.evictions(), 2, "and none begins after it")
		require.Len(t, s.PodsOn("n1"), 9)
	}, web(9)...)
}

func TestCancelDuringAPass(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.Hold(evictionOfPods)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := s.Pass(t.Context(), "n1")
			require.NoError(t, err)
		})
		synctest.Wait()
		s.Cancel("n1")
		wg.Wait()
		require.Empty(t, s.InFlight(nil))
	}, web(3)...)
}

func TestConcurrentPasses(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.Delay(evictionOfPods, time.Millisecond)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				advance(time.Duration(i) * 100 * time.Microsecond)
				_, err := s.Pass(t.Context(), "n1")
				require.NoError(t, err)
			})
		}
		wg.Wait()
		require.Len(t, s.evictions(), 30)
		require.True(t, s.pass("n1").Done())
	}, web(30)...)
}

func TestBrokenWatchListsFirst(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.AddBudget("shop", "web", app, 2)
		s.settle("n1")
		fault := []*mt.Rule{s.Fail(mt.On("watch", "pods"), nil)}
		s.CloseWatches("pods")
		<-s.wakes
		s.RemovePod("shop", "web-0")
		s.ClearRequests()
		fault = append(fault, s.Fail(mt.On("list", "pods"), errors.New("away")).Times(1))
		_, err := s.Pass(t.Context(), "n1")
		require.EqualError(t, err, `listing pods of node "n1": away`)
		r := s.pass("n1")
		require.Equal(t, []string{"shop/web-1"}, names(r.Pending()), "the pod that went unseen is not asked for")
		require.Equal(t, 5*time.Second, r.RetryAfter)

		for _, f := range fault {
			f.Remove()
		}
		advance(time.Minute) // the watch is taken up again
		s.settle("n1")
		s.ClearRequests()
		s.pass("n1")
		require.Empty(t, s.Matching(mt.On("list", "pods")))
	}, web(2)...)
}

func TestQueueOutlivesTheEvidence(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{MaxInFlight: 1}, func(t *testing.T, s *stage) {
		end := s.watch("n1")
		hold := s.Hold(evictionOfPods.Named("shop", "web-0"))
		s.pass("n1")
		s.RemovePod("shop", "web-1")
		s.DeletePod("shop", "web-2")
		synctest.Wait()
		hold.Release()
		s.settle("n1")
		require.Equal(t, []string{"shop/web-0", "shop/web-3"}, s.evictions(), "the watch is asked once more when a call's turn comes")
		end()
	}, append(web(2), mt.Pod("shop", "web-2", "n1", mt.TerminatesIn(mt.Never)), mt.Pod("shop", "web-3", "n1"))...)

	onStage(t, mt.Options{}, drainer.Options{MaxInFlight: 1}, func(t *testing.T, s *stage) {
		hold := s.Hold(evictionOfPods.Named("shop", "web-0"))
		s.pass("n1")
		s.RemovePod("shop", "web-1")
		advance(2 * time.Second)
		hold.Release()
		synctest.Wait()
		require.Equal(t, []string{"shop/web-0"}, s.evictions(), "without a watch the pod is read first")
	}, web(2)...)
}

func TestNodesTakeTurns(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{MaxInFlight: 4}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.watch("n2")
		s.Hold(func(r mt.Request) bool { return evictionOfPods(r) && r.Namespace == "shop" })
		s.pass("n1")
		began := time.Now()
		r := s.pass("n2")
		require.Len(t, r.Evicted, 1, "calls that hang for one node leave room for another")
		require.Zero(t, time.Since(began))
	}, append(web(9), mt.Pod("blog", "db", "n2"))...)
}

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

func TestStrongerMeans(t *testing.T) {
	deletions := mt.On("delete", "pods")
	grace := func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64) }
	for _, tt := range []struct {
		reason   string
		o        drainer.Options
		deletes  time.Duration // after that; negative: never
		evicts   bool
		graceOne bool
	}{
		{"by default nothing is deleted", drainer.Options{}, -1, true, false},
		{"DisableEviction deletes at once", drainer.Options{DisableEviction: true}, 0, false, true},
		{"DeleteAfter deletes after its time", drainer.Options{DeleteAfter: 30 * time.Second}, 30 * time.Second, true, true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, mt.Options{Termination: mt.OwnGrace}, tt.o, func(t *testing.T, s *stage) {
				s.watch("n1")
				s.AddBudget("shop", "web", app, 1)
				uid := s.Pod("shop", "web-0").UID
				began := time.Now()
				for time.Since(began) < time.Minute && len(s.Matching(deletions)) == 0 {
					r := s.settle("n1")
					if r.RetryAfter > 0 {
						advance(r.RetryAfter)
					}
				}
				require.Equal(t, tt.evicts, len(s.evictions()) > 0)
				if tt.deletes < 0 {
					require.NotNil(t, s.Pod("shop", "web-0"))
					return
				}
				require.Equal(t, tt.deletes, time.Since(began).Truncate(5*time.Second))
				require.Equal(t, uid, *s.Matching(deletions)[0].Preconditions.UID)
				if p := s.Pod("shop", "web-0"); p != nil {
					require.Equal(t, int64(1), *p.DeletionGracePeriodSeconds, "never 0, even for a pod that says so")
				}
			}, mt.Pod("shop", "web-0", "n1", mt.Labels(app), grace))
		})
	}
}

func TestGracePeriod(t *testing.T) {
	onStage(t, mt.Options{Termination: mt.OwnGrace}, drainer.Options{GracePeriod: 7 * time.Second}, func(t *testing.T, s *stage) {
		s.pass("n1")
		_, e := s.eviction(0)
		require.Equal(t, int64(7), *e.DeleteOptions.GracePeriodSeconds)
	}, web(1)...)
	onStage(t, mt.Options{Termination: mt.OwnGrace}, drainer.Options{GracePeriod: 7 * time.Second, DisableEviction: true}, func(t *testing.T, s *stage) {
		s.pass("n1")
		require.Equal(t, int64(7), *s.Pod("shop", "web-0").DeletionGracePeriodSeconds)
	}, web(1)...)
}

func TestCordon(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		n := s.Node("n1")
		require.NoError(t, s.Cordon(t.Context(), n))
		require.False(t, n.Spec.Unschedulable, "the caller's copy is left alone")
		require.True(t, s.Node("n1").Spec.Unschedulable)
		require.NoError(t, s.Cordon(t.Context(), s.Node("n1")))
		require.Len(t, s.Writes(), 1, "written once")
		require.NoError(t, s.Uncordon(t.Context(), s.Node("n1")))
		require.False(t, s.Node("n1").Spec.Unschedulable)
		s.Fail(mt.On("patch", "nodes"), errors.New("away"))
		require.EqualError(t, s.Cordon(t.Context(), s.Node("n1")), `setting node "n1" schedulable to false: away`)
	})
}

func TestReportLists(t *testing.T) {
	onStage(t, mt.Options{Termination: mt.Never}, drainer.Options{}, func(t *testing.T, s *stage) {
		r := s.pass("n1")
		require.Equal(t, []string{"a/db", "b/db", "z/api"}, names([]drainer.Pod{r.Pending()[1], r.Pending()[2], r.Pending()[0]}), "by name, then namespace")
		require.Equal(t, r.Pending(), r.Leaving)
	}, mt.Pod("b", "db", "n1"), mt.Pod("z", "api", "n1"), mt.Pod("a", "db", "n1"))
}

func TestWatchIsReplaced(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		end := s.watch("n1")
		s.watch("n1")
		end()
		advance(time.Second)
		require.Equal(t, 1, s.Watches("pods"))
		require.Equal(t, 1, s.Watches("daemonsets"), "the later watch keeps what it shares with the earlier")
		s.ClearRequests()
		s.pass("n1")
		require.Empty(t, s.Requests())
	}, mt.Pod("shop", "agent-x", "n1", mt.OfDaemonSet("agent")), mt.DaemonSet("shop", "agent"))
}

func Example() {
	web := map[string]string{"app": "web"}
	c := mt.New(mt.Options{}, []runtime.Object{
		mt.Node("n1"),
		mt.Pod("shop", "web-0", "n1", mt.Labels(web)),
		mt.Pod("shop", "cron-1", "n1"),
	}...)
	defer c.Close()
	c.AddBudget("shop", "web", web, 1)
	d := drainer.New(c.Client(), drainer.Options{})
	defer d.Cancel("n1")

	r, err := d.Pass(context.Background(), "n1")
	fmt.Println("error:", err)
	for _, p := range r.Evicted {
		fmt.Println("evicted:", p.Namespace+"/"+p.Name)
	}
	for _, p := range r.Blocked {
		fmt.Println("blocked:", p.Namespace+"/"+p.Name, "by", p.Budgets[0].Name)
	}
	fmt.Println("again in", r.RetryAfter.Round(time.Second))
	// Output:
	// error: <nil>
	// evicted: shop/cron-1
	// blocked: shop/web-0 by web
	// again in 5s
}
