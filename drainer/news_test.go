// SPDX-License-Identifier: Apache-2.0

package drainer_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
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
				select {
				case <-s.wakes:
					require.True(t, tt.wakes)
				default:
					require.False(t, tt.wakes)
				}
			}, web(2)...) // of which one waits for the other's budget
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
				select {
				case <-s.wakes:
					require.True(t, tt.wakes)
				default:
					require.False(t, tt.wakes)
				}
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
