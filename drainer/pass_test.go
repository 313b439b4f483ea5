// SPDX-License-Identifier: Apache-2.0

package drainer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// A pass lists the pods itself until the copy stands. One that came after the copy's own list is not in it yet.
func TestCopyThatHasNotSeenAPodYet(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		hold := s.Hold(mt.On("watch", "pods"))
		s.watch("n1")
		s.Add(web(1)...)
		s.PauseWatches("pods")
		s.Then(mt.On("list", "pods"), hold.Release).Times(1)
		s.pass("n1")
		require.Equal(t, []string{"shop/web-0"}, s.evictions())
		s.ResumeWatches("pods")
		require.True(t, s.settle("n1").Done())
		require.Empty(t, s.PodsOn("n1"))
	})
}

func TestNodeWithoutAName(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("")
		_, err := s.Pass(t.Context(), "")
		require.EqualError(t, err, `listing pods of node "": node name is empty`)
		_, err = s.Plan(t.Context(), "")
		require.EqualError(t, err, `listing pods of node "": node name is empty`)
		require.Empty(t, s.Requests(), "pods that are not scheduled are no node's")
	}, mt.Pod("shop", "waiting", "", mt.Phase(corev1.PodPending)))
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

func TestReportLists(t *testing.T) {
	onStage(t, mt.Options{Termination: mt.Never}, drainer.Options{}, func(t *testing.T, s *stage) {
		r := s.pass("n1")
		require.Equal(t, []string{"a/db", "b/db", "z/api"}, names([]drainer.Pod{r.Pending()[1], r.Pending()[2], r.Pending()[0]}), "by name, then namespace")
		require.Equal(t, r.Pending(), r.Leaving)
	}, mt.Pod("b", "db", "n1"), mt.Pod("z", "api", "n1"), mt.Pod("a", "db", "n1"))
}

func TestPodOutlivesItsDaemonSet(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		require.Len(t, s.pass("n1").Staying, 1)
		require.NoError(t, s.Client().AppsV1().DaemonSets("shop").Delete(t.Context(), "agent", metav1.DeleteOptions{}))
		synctest.Wait()
		require.Empty(t, s.pass("n1").Staying, "nothing would bring it back")
	}, mt.Pod("shop", "agent-x", "n1", mt.OfDaemonSet("agent")), mt.DaemonSet("shop", "agent"))
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
