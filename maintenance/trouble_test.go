// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestPassThatCannotBeMadeSaysWhy(t *testing.T) {
	denied := apierrors.NewForbidden(corev1.Resource("nodes"), "n1", errors.New(strings.Repeat("no right ", 10_000)))
	onStage(t, func(t *testing.T, s *stage) {
		rule := s.Fail(mt.On("patch", "nodes"), denied)
		state, err := s.Start(t.Context(), "n1", maintenance.State{})
		require.ErrorIs(t, err, denied)
		require.Equal(t, maintenance.Running, state.Phase)
		require.Contains(t, state.Error, `nodes "n1" is forbidden: no right`)
		require.Less(t, len(state.Error), 10_000, "however long the answer was")
		require.False(t, state.Progress.Recorded)
		require.Equal(t, time.Now(), state.Updated)

		rule.Remove()
		state = s.until(state, maintenance.Succeeded)
		require.Empty(t, state.Error)

		s.Fail(mt.On("patch", "nodes"), denied)
		s.EditNode("n1", foreign[maintenance.MarkLabel])
		state, err = s.Start(t.Context(), "n1", state)
		require.Error(t, err)
		require.Equal(t, maintenance.Succeeded, state.Phase, "no pod came back")
		require.Contains(t, state.Error, "no right")

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		broken, err := s.Start(ctx, "n1", maintenance.State{})
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, broken, "who breaks off is in nobody's way")
	})
}

func TestTroubleLeavesTheCountOfLeaseFailuresAlone(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		s.steal()
		state = s.start(state)
		require.Equal(t, 1, state.LeaseErrors)
		s.Fail(mt.On("get", "leases"), apierrors.NewInternalError(errors.New("down")))
		next, err := s.Start(t.Context(), "n1", state)
		require.Error(t, err)
		require.Equal(t, state.Error, next.Error)
		require.Equal(t, state.Updated, next.Updated)
	})
}

// What waits for a budget goes when that allows it, without a pass. It must not if no pass could renew the lease.
func TestNothingGoesOnceTheLeaseCannotBeRenewed(t *testing.T) {
	leases := coordinationv1.Resource("leases")
	for _, tt := range []struct {
		reason string
		err    error
		after  time.Duration // that the lease is not renewed
		goes   bool
	}{
		{"a hiccup while the lease is not due", apierrors.NewInternalError(errors.New("down")), 10 * time.Second, true},
		{"the API server fails until the lease has run out", apierrors.NewInternalError(errors.New("down")), 61 * time.Minute, false},
		{"it refuses until then", apierrors.NewForbidden(leases, "node-n1", errors.New("no right")), 61 * time.Minute, false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				s.AddBudget("shop", "web", app, 2)
				s.watch()
				state := s.start(s.start(maintenance.State{}))
				require.NotEmpty(t, state.Report.Blocked)
				s.Fail(func(r mt.Request) bool { return r.Resource == "leases" && r.Verb != "watch" }, tt.err)
				for began, pause := time.Now(), time.Second; time.Since(began) < tt.after; pause = min(2*pause, time.Minute) {
					advance(pause)
					if next, err := s.Start(t.Context(), "n1", state); err == nil {
						state = next
					}
					synctest.Wait()
				}
				s.ClearRequests()

				s.SetDisruptionsAllowed("shop", "web", 1)
				synctest.Wait()

				if tt.goes {
					require.NotEmpty(t, s.Matching(mt.On("create", "pods/eviction")))
				} else {
					require.Empty(t, s.Matching(mt.On("create", "pods/eviction")))
				}
			}, webPod(), mt.Pod("shop", "web-1", "n1", mt.Labels(app), mt.OfReplicaSet("web")))
		})
	}
}
