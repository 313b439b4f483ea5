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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestRunBlockedThenFreed(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.AddBudget("shop", "web", app, 1)
		var freed time.Time
		for state, err := range s.Run(t.Context(), "n1") {
			require.NoError(t, err)
			if len(state.Report.Blocked) > 0 && freed.IsZero() {
				require.Equal(t, "shop/web-0: budget shop/web needs 1 healthy pods and has 1", state.Error)
				time.AfterFunc(time.Second, func() {
					freed = time.Now()
					s.SetDisruptionsAllowed("shop", "web", 1)
				})
			}
			if state.Phase == maintenance.Succeeded {
				require.Empty(t, state.Error)
				break
			}
		}
		require.Equal(t, maintenance.WakeDelay, time.Since(freed), "at once")
		synctest.Wait()
		require.Zero(t, s.Watches("*"), "breaking off ends its watches")
		held(t, s.Node("n1"))
	}, webPod())
}

func TestRunEndsWhenTheNodeIsGone(t *testing.T) {
	for _, tt := range []struct {
		reason string
		after  func(*stage)
	}{
		{"deleted", func(*stage) {}},
		{"another one has its name", func(s *stage) { s.Add(mt.Node("n1")) }},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				s.AddBudget("shop", "web", app, 1)
				var last error
				for state, err := range s.Run(t.Context(), "n1") {
					if last = err; err == nil && len(state.Report.Blocked) > 0 {
						s.DeleteNode("n1")
						tt.after(s)
					}
				}
				require.ErrorIs(t, last, maintenance.ErrGone)
				require.ErrorContains(t, last, `"n1"`)
			}, webPod())
		})
	}
}

func TestRunBacksOff(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		for _, verb := range []string{"get", "list", "watch"} {
			s.Fail(mt.On(verb, "nodes"), nil)
		}
		began := time.Now()
		var failures []time.Duration
		for state, err := range s.Run(t.Context(), "n1") {
			require.ErrorIs(t, err, mt.ErrInjected)
			require.Equal(t, maintenance.State{Phase: maintenance.Running, Error: err.Error(), Updated: began}, state)
			failures = append(failures, time.Since(began))
			if len(failures) == 9 {
				break
			}
		}
		want := []time.Duration{0, 1, 3, 7, 15, 31, 63, 123, 183}
		for i := range want {
			require.Equal(t, want[i]*time.Second, failures[i], "the pause doubles up to a minute, whatever a watch shows")
		}
	})
}

func TestRunEnds(t *testing.T) {
	t.Run("with its context", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			enough := errors.New("enough")
			var last error
			for state, err := range s.Run(ctx, "n1") {
				if last = err; state.Phase == maintenance.Succeeded {
					cancel(enough)
				}
			}
			require.ErrorIs(t, last, enough)
			held(t, s.Node("n1"))
		})
	})
	t.Run("with a failure", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			var last maintenance.State
			for state, err := range s.Run(t.Context(), "n9") {
				require.NoError(t, err)
				last = state
			}
			require.Equal(t, maintenance.NodeNotFound, last.Failure)
		})
	})
	t.Run("with a Stop", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			before := looks(s.Node("n1"))
			var last error
			var wg sync.WaitGroup
			for state, err := range s.Run(t.Context(), "n1") {
				if last = err; state.Phase == maintenance.Succeeded && err == nil {
					wg.Go(func() { _, _ = s.Stop(t.Context(), "n1") })
				}
			}
			wg.Wait()
			advance(time.Minute)
			require.ErrorIs(t, last, maintenance.ErrStopped)
			require.Equal(t, before, looks(s.Node("n1")), "and does not claim the node again")
			require.Nil(t, s.Lease(leaseNS, "node-n1"))
		})
	})
	t.Run("with its reader, after an error too", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			s.Fail(mt.On("*", "leases"), nil)
			for _, err := range s.Run(t.Context(), "n1") {
				require.Error(t, err)
				break
			}
			synctest.Wait()
			require.Zero(t, s.Watches("*"))
		})
	})
}

func TestRunHolds(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		news := 0
		for state, err := range s.Run(t.Context(), "n1") {
			require.NoError(t, err)
			if len(state.Reheld) > 0 {
				held(t, s.Node("n1"))
				if news++; news == 2 {
					break
				}
			}
			if state.Phase == maintenance.Succeeded {
				takeOff := foreign[[]maintenance.Mark{maintenance.MarkCordon, maintenance.MarkLabel}[news]]
				time.AfterFunc(10*time.Second, func() { s.EditNode("n1", takeOff) })
			}
		}
		require.Equal(t, 2, news)
	})
}

func TestWatchWakes(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.AddBudget("shop", "web", app, 1)
		s.AddBudget("other", "web", app, 1)
		wakes := s.watch()
		s.start(s.start(maintenance.State{}))
		drain := func() bool {
			synctest.Wait()
			advance(maintenance.WakeDelay)
			synctest.Wait()
			select {
			case <-wakes:
				return true
			default:
				return false
			}
		}
		drain()
		require.False(t, drain(), "at most one ahead")
		for _, tt := range []struct {
			reason string
			act    func()
			want   bool
		}{
			{"the node", func() { s.EditNode("n1", func(n *corev1.Node) { n.Labels["a"] = "b" }) }, true},
			{"a heartbeat", func() {
				s.EditNode("n1", func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() })
			}, false},
			{"that the node is not ready", func() {
				s.EditNode("n1", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
			}, true},
			{"a condition of a pod that nobody reads", func() {
				s.EditPod("shop", "web-0", func(p *corev1.Pod) {
					p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
				})
			}, false},
			{"a burst", func() {
				for range 3 {
					s.EditNode("n1", func(n *corev1.Node) { n.Labels["a"] += "b" })
					synctest.Wait()
				}
			}, true},
			{"nothing more", func() {}, false},
			{"a pod of it", func() { s.EditPod("shop", "web-0", func(p *corev1.Pod) { p.Labels["a"] = "b" }) }, true},
			{"a new pod", func() { s.Add(mt.Pod("shop", "late", "n1")) }, true},
			{"its lease", func() { s.recapture() }, false},
			{"its lease, changed", func() { s.steal() }, true},
			{"a budget that blocks", func() { s.SetDisruptionsAllowed("shop", "web", 1) }, true},
			{"a budget that blocks nothing", func() { s.SetDisruptionsAllowed("other", "web", 1) }, false},
			{"another node", func() { s.Add(mt.Node("n2")) }, false},
			{"a pod of another node", func() { s.Add(mt.Pod("shop", "elsewhere", "n2")) }, false},
		} {
			tt.act()
			require.Equal(t, tt.want, drain(), tt.reason)
		}

		again := s.watch() // takes the place of the first
		drain()
		require.Len(t, again, 1, "what was there")
		<-again
		s.EditNode("n1", func(n *corev1.Node) { n.Labels["a"] = "c" })
		synctest.Wait()
		require.Empty(t, again, "it waits for others")
		advance(maintenance.WakeDelay)
		synctest.Wait()
		require.Len(t, again, 1)
	}, webPod())
}

func TestManyNodes(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		done := make(chan string, 60)
		ctx, cancel := context.WithCancel(t.Context())
		follow := func(node string) {
			for state, err := range s.Run(ctx, node) {
				if err == nil && state.Phase == maintenance.Succeeded {
					done <- node
				}
			}
		}
		for i := range 50 { // blocked
			node := fmt.Sprintf("b%d", i)
			s.Add(mt.Node(node), mt.Pod(node, "web", node, mt.Labels(app)))
			s.AddBudget(node, "web", app, 1)
			go follow(node)
		}
		advance(30 * time.Second)
		began := time.Now()
		go follow("n1")
		require.Equal(t, "n1", <-done)
		require.Less(t, time.Since(began), 2*time.Second)
		require.Empty(t, done)
		cancel()
		synctest.Wait()
	}, webPod())
}

func Example() {
	c := mt.New(mt.Options{}, mt.Node("n1"), mt.Pod("shop", "web-0", "n1"))
	defer c.Close()
	e := maintenance.New(c.Client(), maintenance.Options{})
	ctx := context.Background()

	var phase maintenance.Phase
	for state, err := range e.Run(ctx, "n1") {
		if err != nil {
			fmt.Println("will be tried again:", err)
			continue
		}
		if state.Phase != phase {
			phase = state.Phase
			fmt.Printf("%s: %d %%\n", phase, state.Progress.Percent())
		}
		if state.Phase == maintenance.Succeeded {
			break
		}
	}
	fmt.Println("schedulable:", !c.Node("n1").Spec.Unschedulable)
	restored, err := e.Stop(ctx, "n1")
	fmt.Println("uncordoned:", restored.Uncordoned, err)
	fmt.Println("schedulable:", !c.Node("n1").Spec.Unschedulable)
	// Output:
	// Running: 0 %
	// Succeeded: 100 %
	// schedulable: false
	// uncordoned: true <nil>
	// schedulable: true
}
