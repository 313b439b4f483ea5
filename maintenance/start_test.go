// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
	"github.com/nodemaint/nodemaint/taint"
)

var app = map[string]string{"app": "web"}

func webPod() *corev1.Pod {
	return mt.Pod("shop", "web-0", "n1", mt.Labels(app), mt.OfReplicaSet("web"))
}

func TestOrderOfWrites(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		before := looks(s.Node("n1"))
		state := s.start(maintenance.State{})
		require.Equal(t, []string{"create lease", "create namespace", "create lease", "+record +label", "taints +cordon", "evict web-0"}, s.deeds())
		require.Equal(t, maintenance.Running, state.Phase)

		s.ClearRequests()
		state = s.start(state)
		require.Equal(t, maintenance.Succeeded, state.Phase)
		require.Empty(t, s.deeds(), "nothing more is owed")

		require.Equal(t, maintenance.Restored{Changed: true, Uncordoned: true}, s.stop())
		require.Equal(t, []string{"-label", "-record taints -cordon", "delete lease"}, s.deeds())
		require.Equal(t, before, looks(s.Node("n1")))
		require.Equal(t, []maintenance.Step{maintenance.Begin, maintenance.Succeed, maintenance.Uncordon}, s.steps)

		s.ClearRequests()
		require.Equal(t, maintenance.Restored{}, s.stop())
		require.Empty(t, s.deeds(), "a second Stop does nothing")
	}, webPod())
}

func TestNodeTaints(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.Disable(mt.UnschedulableTaint)
		s.start(maintenance.State{})
		require.Equal(t, []corev1.Taint{taint.Drain(), taint.Unschedulable()}, s.Node("n1").Spec.Taints, "both, without a value")
		s.stop()
		require.Empty(t, s.Node("n1").Spec.Taints, "both are taken off by us")
	})
}

// TestWhatWasThereStays begins and ends a maintenance on nodes that are not clean.
func TestWhatWasThereStays(t *testing.T) {
	for _, tt := range []struct {
		reason     string
		node       func(*corev1.Node)
		uncordoned bool
	}{
		{"clean", func(*corev1.Node) {}, true},
		{"cordoned by hand", func(n *corev1.Node) { n.Spec.Unschedulable = true }, false},
		{"a drain taint with a value", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: taint.DrainKey, Value: "x", Effect: corev1.TaintEffectNoSchedule}}
		}, true},
		{"a drain taint without one, and no lease of ours", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{taint.Drain()} }, true},
		{"the label", func(n *corev1.Node) { n.Labels = map[string]string{maintenance.ExcludeLabel: "true"} }, true},
		{"the label with another value", func(n *corev1.Node) { n.Labels = map[string]string{maintenance.ExcludeLabel: "no"} }, true},
		{"everything at once", func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Labels = map[string]string{maintenance.ExcludeLabel: "", "zone": "a"}
			n.Annotations = map[string]string{"note": "mine"}
			n.Spec.Taints = []corev1.Taint{
				{Key: "gpu", Value: "a", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: time.Unix(1e9, 0)}},
				{Key: taint.DrainKey, Value: "x", Effect: corev1.TaintEffectNoSchedule}, taint.Unschedulable(),
			}
		}, false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				s.Disable(mt.UnschedulableTaint)
				s.EditNode("n1", tt.node)
				if s.Node("n1").Spec.Unschedulable {
					s.EditNode("n1", func(n *corev1.Node) { n.Spec.Taints, _ = taint.With(n.Spec.Taints, taint.Unschedulable()) })
				}
				before := looks(s.Node("n1"))
				state := s.until(maintenance.State{}, maintenance.Succeeded)
				n := s.Node("n1")
				require.True(t, n.Spec.Unschedulable)
				require.True(t, taint.Has(n.Spec.Taints, taint.Drain()))
				require.Equal(t, "true", n.Labels[maintenance.ExcludeLabel])
				for range 3 {
					advance(time.Minute)
					state = s.start(state)
					require.Empty(t, state.Reheld)
				}
				require.Equal(t, tt.uncordoned, s.stop().Uncordoned)
				require.Equal(t, before, looks(s.Node("n1")))
				require.Equal(t, tt.uncordoned, len(s.steps) == 3, "Uncordon is told only if it happens: %v", s.steps)
			})
		})
	}
}

func TestCounts(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.AddBudget("shop", "web", app, 1)
		state := s.start(maintenance.State{})
		want := maintenance.Progress{Recorded: true, Total: 5, Eviction: 3, Pending: 3}
		require.Equal(t, want, state.Progress, "terminating and finished pods count")
		require.Contains(t, s.record(), `"total":5,"eviction":3`)
		require.Zero(t, state.Progress.Percent())
		s.RemovePod("shop", "ends")
		advance(5 * time.Second)
		state = s.start(state)
		want.Pending = 1
		require.Equal(t, want, state.Progress, "the counts never change")
		require.Equal(t, 66, state.Progress.Percent())
		s.restart()
		state = s.start(maintenance.State{})
		require.Equal(t, want, state.Progress, "not over a restart without a state either")
		s.Add(mt.Pod("shop", "late-1", "n1", mt.Labels(app)), mt.Pod("shop", "late-2", "n1", mt.Labels(app)), mt.Pod("shop", "late-3", "n1", mt.Labels(app)))
		state = s.start(state)
		require.Equal(t, 4, state.Progress.Pending)
		require.Zero(t, state.Progress.Percent(), "more pending than there were")
	}, webPod(), mt.Pod("shop", "done", "n1", mt.Phase(corev1.PodSucceeded)), mt.DaemonSet("kube-system", "proxy"),
		mt.Pod("kube-system", "proxy-x", "n1", mt.OfDaemonSet("proxy")), mt.Pod("kube-system", "etcd", "n1", mt.Mirror()),
		edited(mt.Pod("shop", "ends", "n1", mt.Finalizers("x/y")), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)} }))
}

func edited(p *corev1.Pod, f func(*corev1.Pod)) *corev1.Pod {
	f(p)
	return p
}

func TestPhases(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.watch()
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		require.True(t, state.EverSucceeded)
		for range 2 {
			s.SetTermination(time.Second)
			s.Add(mt.Pod("shop", "late", "n1"))
			synctest.Wait()
			state = s.start(state)
			require.Equal(t, maintenance.Running, state.Phase, "a pod that comes late")
			require.Less(t, state.Progress.Percent(), 100)
			state = s.until(state, maintenance.Succeeded)
			require.Equal(t, 100, state.Progress.Percent())
			advance(5 * time.Second)
		}
		require.Equal(t, []maintenance.Step{maintenance.Begin, maintenance.Succeed}, s.steps, "no second event")
	})
}

func TestHooks(t *testing.T) {
	no := errors.New("the API server is away")
	for _, tt := range []struct {
		step   maintenance.Step
		before []string // what is written before it
		stop   bool
	}{
		{maintenance.Begin, []string{"create lease", "create namespace", "create lease"}, false},
		{maintenance.Succeed, []string{"create lease", "create namespace", "create lease", "+record +label", "taints +cordon"}, false},
		{maintenance.Uncordon, []string{"-label"}, true},
		{maintenance.RestoreIncomplete, nil, true},
	} {
		t.Run(string(tt.step), func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				if tt.stop {
					s.until(maintenance.State{}, maintenance.Succeeded)
				}
				if tt.step == maintenance.RestoreIncomplete {
					s.EditNode("n1", func(n *corev1.Node) { n.Annotations[maintenance.RecordAnnotation] = "{{{" })
				}
				s.ClearRequests()
				s.hook = func(tr maintenance.Transition) error {
					require.Equal(t, "n1", tr.Node)
					if tr.Step == tt.step {
						return no
					}
					return nil
				}
				prior := maintenance.State{Error: "as before"}
				for range 2 {
					var err error
					if tt.stop {
						_, err = s.Stop(t.Context(), "n1")
					} else {
						var state maintenance.State
						state, err = s.Start(t.Context(), "n1", prior)
						want := failing(prior, err)
						want.Lease = maintenance.LeaseHeld
						require.Equal(t, want, state, "the state is that before, but for what stands in the way, and the lease")
					}
					require.ErrorIs(t, err, no)
					require.NotContains(t, s.steps[max(0, len(s.steps)-1):], tt.step)
				}
				require.Equal(t, append([]string{}, tt.before...), s.deeds(), "an error stops the step")
				if tt.stop {
					require.NotNil(t, s.Lease(leaseNS, "node-n1"))
				}
				s.hook = nil
				if tt.stop {
					s.stop()
				} else {
					s.until(prior, maintenance.Succeeded)
				}
				require.Contains(t, s.steps, tt.step)
			})
		})
	}
	onStage(t, func(t *testing.T, s *stage) {
		s.hook = func(maintenance.Transition) error { return no }
		for range 2 {
			state, err := s.Start(t.Context(), "n9", maintenance.State{})
			require.ErrorIs(t, err, no)
			require.Equal(t, failing(maintenance.State{}, err), state)
		}
	})
}

// TestEvictionIsToldOnce has the pass that hears of an eviction fail: the next state tells of it, and no other.
func TestEvictionIsToldOnce(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.watch()
		slow := s.Hold(mt.On("create", "pods/eviction"))
		state := s.start(maintenance.State{})
		require.Len(t, state.Report.Deferred, 1)
		slow.Release()
		synctest.Wait()
		require.Empty(t, s.PodsOn("n1"))
		s.hook = func(maintenance.Transition) error { return mt.ErrInjected }
		_, err := s.Start(t.Context(), "n1", state)
		require.ErrorIs(t, err, mt.ErrInjected)
		s.hook = nil
		state = s.start(state)
		require.Equal(t, maintenance.Succeeded, state.Phase)
		require.Len(t, state.Report.Evicted, 1)
		require.Equal(t, "web-0", state.Report.Evicted[0].Name)
		s.steal()
		state = s.start(state)
		require.False(t, state.Looked)
		require.Empty(t, state.Report.Evicted, "nor does a pass that sees no pods tell it again")
	}, webPod())
}

func TestPassThatCannotBeMade(t *testing.T) {
	for _, tt := range []struct {
		reason string
		match  mt.Match
		says   string
		lease  maintenance.LeaseStatus
	}{
		{"the node cannot be read", mt.On("get", "nodes"), `maintenance of node "n1": getting node "n1": `, ""},
		{"the lease cannot be read", mt.On("get", "leases"), `maintenance of node "n1": getting lease of node "n1": `, ""},
		{"the pods cannot be counted", mt.On("list", "pods"), `counting the pods: listing pods of node "n1": `, maintenance.LeaseHeld},
		{"the record cannot be written", mt.On("patch", "nodes"), `recording what stands on node "n1": `, maintenance.LeaseHeld},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				fault := s.Fail(tt.match, nil)
				prior := maintenance.State{Phase: maintenance.Running, Error: "as before"}
				state, err := s.Start(t.Context(), "n1", prior)
				require.ErrorIs(t, err, mt.ErrInjected)
				require.ErrorContains(t, err, tt.says)
				want := failing(prior, err)
				want.Lease = tt.lease
				require.Equal(t, want, state)
				require.False(t, s.Node("n1").Spec.Unschedulable)
				fault.Remove()
				s.until(state, maintenance.Succeeded)
			})
		})
	}
	onStage(t, func(t *testing.T, s *stage) {
		for n := 5; n <= 6; n++ { // taints, cordon
			fault := s.FailWrite(n, nil)
			_, err := s.Start(t.Context(), "n1", maintenance.State{})
			require.ErrorIs(t, err, mt.ErrInjected)
			fault.Remove()
		}
		fault := s.Fail(mt.On("list", "pods"), nil)
		state, err := s.Start(t.Context(), "n1", maintenance.State{})
		require.ErrorContains(t, err, "listing pods")
		fault.Remove()
		s.until(state, maintenance.Succeeded)
		for _, m := range []mt.Match{mt.On("get", "nodes"), mt.On("patch", "nodes"), mt.On("get", "leases"), mt.On("delete", "leases")} {
			fault := s.Fail(m, nil)
			_, err := s.Stop(t.Context(), "n1")
			require.ErrorIs(t, err, mt.ErrInjected)
			require.ErrorContains(t, err, "stopping maintenance: ")
			fault.Remove()
		}
		s.stop()
		require.Nil(t, s.Lease(leaseNS, "node-n1"))
	})
	onStage(t, func(t *testing.T, s *stage) {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		cancel(enough)
		_, err := s.Start(ctx, "n1", maintenance.State{})
		require.ErrorIs(t, err, enough)
	})
}

func TestUpdated(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.AddBudget("shop", "web", app, 1)
		state := s.start(maintenance.State{})
		changed := time.Now()
		require.Equal(t, changed, state.Updated)
		for range 10 {
			advance(state.RetryAfter)
			state = s.start(state)
			require.Equal(t, changed, state.Updated, "blocked as before: nothing has changed")
		}
		s.DeleteBudget("shop", "web")
		advance(state.RetryAfter)
		state = s.start(state)
		require.Equal(t, time.Now(), state.Updated)
	}, webPod())
}
