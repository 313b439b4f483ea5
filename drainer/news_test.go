// SPDX-License-Identifier: Apache-2.0

package drainer_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/nodemaint/nodemaint/drainer"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// TestNewsOfABudget: a budget that many nodes share changes with each pod that goes on any of them.
func TestNewsOfABudget(t *testing.T) {
	for _, tt := range []struct {
		reason  string
		allowed int
		news    func(s *stage)
		wakes   bool
	}{
		{"its numbers are in the report of a blocked pod", 0, func(s *stage) { s.renumber(7) }, true},
		{"its pods wait their turn: its numbers are in no report", 1, func(s *stage) { s.renumber(7) }, false},
		{"it asks for something else", 1, func(s *stage) { s.demand(1) }, true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, mt.Options{Termination: mt.Never}, drainer.Options{}, func(t *testing.T, s *stage) {
				s.inTurn(tt.allowed)
				s.settle("n1")
				advance(2 * drainer.NewsDelay) // what woke until now is over
				s.settle("n1")
				tt.news(s)
				advance(2 * drainer.NewsDelay)
				require.Equal(t, tt.wakes, s.woken())
			}, web(2)...) // of which one waits for the other's budget
		})
	}
}

// TestNewsOfAPod: a node of many pods would cost several passes a pod, if each step of each on its way brought one.
func TestNewsOfAPod(t *testing.T) {
	for _, tt := range []struct {
		reason string
		pods   int // besides the one that leaves last
		news   func(s *stage)
		wakes  bool // at once
	}{
		{"it is deleted", 2, func(s *stage) { s.DeletePod("shop", "web-0") }, false},
		{"it is gone, another is not", 2, func(s *stage) { s.RemovePod("shop", "web-0") }, false},
		{"it is gone, and with it the last but the one that leaves last", 1, func(s *stage) { s.RemovePod("shop", "web-0") }, true},
		{"the one that leaves last is gone", 0, func(s *stage) { s.RemovePod("shop", "own") }, true},
		{"it is ready no more, which may free it", 2, func(s *stage) {
			s.EditPod("shop", "web-0", func(p *corev1.Pod) { p.Status.Conditions = nil })
		}, true},
		{"its name comes back with another", 2, func(s *stage) {
			s.EditPod("shop", "web-0", func(p *corev1.Pod) { p.UID = "another" })
		}, true},
		{"another comes", 2, func(s *stage) { s.Add(mt.Pod("shop", "late", "n1")) }, true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			o := drainer.Options{Last: func(p *corev1.Pod) bool { return p.Name == "own" }}
			onStage(t, mt.Options{Termination: mt.Never}, o, func(t *testing.T, s *stage) {
				s.AddBudget("shop", "web", app, 2)
				s.watch("n1")
				for range 3 { // until the one that leaves last was asked to, and what woke is over
					s.settle("n1")
					advance(2 * drainer.NewsDelay)
				}
				s.settle("n1")
				tt.news(s)
				synctest.Wait()
				require.Equal(t, tt.wakes, s.woken())
				advance(drainer.NewsDelay)
				synctest.Wait()
				require.Equal(t, !tt.wakes, s.woken(), "nothing is told twice, and nothing never")
			}, append(web(tt.pods), mt.Pod("shop", "own", "n1"))...)
		})
	}
}

// TestNewsOfAnAnswer: that an eviction was accepted is to be told, but there is nothing to do about it.
func TestNewsOfAnAnswer(t *testing.T) {
	for _, tt := range []struct {
		reason string
		answer error
		wakes  bool
	}{
		{"accepted", nil, false},
		{"refused", apierrors.NewForbidden(corev1.Resource("pods"), "web-0", nil), true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, mt.Options{Termination: mt.Never}, drainer.Options{}, func(t *testing.T, s *stage) {
				s.watch("n1")
				hold := s.Hold(evictionOfPods)
				if tt.answer != nil {
					s.Fail(evictionOfPods, tt.answer)
				}
				s.settle("n1")
				hold.Release()
				synctest.Wait()
				require.Equal(t, tt.wakes, s.woken())
				advance(drainer.NewsDelay)
				r := s.pass("n1")
				require.Equal(t, tt.answer == nil, len(r.Evicted) == 1)
			}, web(1)...)
		})
	}
}

// TestNewsOfADaemonSet: its status changes with each of its pods, on whatever node of the cluster.
func TestNewsOfADaemonSet(t *testing.T) {
	for _, tt := range []struct {
		reason string
		news   func(s *stage)
		wakes  bool
	}{
		{"a pod of it is ready somewhere", func(s *stage) {
			mt.Edit(s.Cluster, "shop", "agent", func(ds *appsv1.DaemonSet) { ds.Status.NumberReady++ })
		}, false},
		{"it is edited", func(s *stage) {
			mt.Edit(s.Cluster, "shop", "agent", func(ds *appsv1.DaemonSet) { ds.Generation++ })
		}, false},
		{"another comes", func(s *stage) { s.Add(mt.DaemonSet("shop", "other")) }, true},
		{"it goes", func(s *stage) {
			require.NoError(t, s.Client().AppsV1().DaemonSets("shop").Delete(t.Context(), "agent", metav1.DeleteOptions{}))
		}, true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
				s.watch("n1")
				s.settle("n1")
				tt.news(s)
				synctest.Wait()
				require.Equal(t, tt.wakes, s.woken())
			}, mt.DaemonSet("shop", "agent"), mt.Pod("shop", "agent-x", "n1", mt.OfDaemonSet("agent")))
		})
	}
}

// renumber has the disruption controller count anew.
func (s *stage) renumber(healthy int32) {
	s.EditBudget("shop", "web", func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = healthy })
	synctest.Wait()
}

// demand has somebody edit what the budget asks for.
func (s *stage) demand(least int) {
	s.EditBudget("shop", "web", func(b *policyv1.PodDisruptionBudget) {
		v := intstr.FromInt(least)
		b.Generation++
		b.Spec.MinAvailable = &v
	})
	synctest.Wait()
}

// woken says whether something has woken the watcher since the last time.
func (s *stage) woken() bool {
	select {
	case <-s.wakes:
		return true
	default:
		return false
	}
}
