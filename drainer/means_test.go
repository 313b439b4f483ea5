// SPDX-License-Identifier: Apache-2.0

package drainer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/drainer"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

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
