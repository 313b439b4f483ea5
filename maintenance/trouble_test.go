// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

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

		s.Hold(mt.On("get", "leases"))
		for _, reason := range []error{nil, errors.New("the time is over")} { // some frameworks give one of their own
			short, done := context.WithTimeoutCause(t.Context(), 30*time.Second, reason)
			state, err = s.Start(short, "n1", state)
			done()
			require.ErrorIs(t, err, context.Cause(short))
			require.Contains(t, state.Error, context.Cause(short).Error(), "which is not broken off: it took too long")
		}

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		broken, err := s.Start(ctx, "n1", maintenance.State{})
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, broken, "who breaks off is in nobody's way")
	})
}

// Who waits for another call on the node until the time is over has not made a pass either.
func TestStartThatNeverGetsItsTurnSaysSo(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		hangs, end := context.WithCancel(t.Context())
		s.Hold(mt.On("get", "leases"))
		var first sync.WaitGroup
		first.Go(func() { _, _ = s.Start(hangs, "n1", maintenance.State{}) })
		synctest.Wait()
		short, done := context.WithTimeoutCause(t.Context(), time.Second, errors.New("the time is over"))
		defer done()
		state, err := s.Start(short, "n1", maintenance.State{})
		require.ErrorContains(t, err, "the time is over")
		require.Equal(t, maintenance.Running, state.Phase)
		require.Contains(t, state.Error, "the time is over")
		end()
		first.Wait()
	})
}

// A lease that was had again in a pass that failed later is had, and is not what stands in the way.
func TestLeaseHadAgainInAPassThatFails(t *testing.T) {
	for _, resource := range []string{"nodes", "pods"} {
		t.Run(resource, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				state := s.until(maintenance.State{}, maintenance.Succeeded)
				s.steal()
				state = s.start(state)
				require.Equal(t, 1, state.LeaseErrors)
				s.EditLease("medik8s-leases", "node-n1", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil })
				s.EditNode("n1", foreign[maintenance.MarkLabel])
				s.Fail(func(r mt.Request) bool { return r.Resource == resource && (r.Verb == "patch" || r.Resource == "pods") }, nil)
				advance(maintenance.LeaseRetry)

				next, err := s.Start(t.Context(), "n1", state)

				require.Error(t, err)
				require.Zero(t, next.LeaseErrors)
				require.Equal(t, maintenance.LeaseHeld, next.Lease)
				require.Empty(t, next.LeaseError)
				require.Contains(t, next.Error, "injected failure")
			})
		})
	}
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

// What no pass has been able to see for a minute is not said any more.
func TestNotSucceededOnceNoPassCanLook(t *testing.T) {
	down := apierrors.NewInternalError(errors.New("down"))
	onStage(t, func(t *testing.T, s *stage) {
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		advance(20 * time.Minute) // the lease is due
		rule := s.Fail(func(r mt.Request) bool { return r.Resource == "leases" && r.Write() }, down)
		s.Add(mt.Pod("shop", "late", "n1"))
		fails := func() {
			t.Helper()
			next, err := s.Start(t.Context(), "n1", state)
			require.ErrorIs(t, err, down)
			require.Contains(t, next.Error, "down")
			state = next
		}
		fails()
		require.Equal(t, maintenance.Succeeded, state.Phase, "one failure says nothing of the pods")
		advance(maintenance.LeaseLook - time.Second)
		fails()
		require.Equal(t, maintenance.Succeeded, state.Phase)
		advance(time.Second)
		fails()
		require.Equal(t, maintenance.Running, state.Phase)
		require.Equal(t, maintenance.LeaseHeld, state.Lease, "it has not run out")
		advance(40 * time.Minute)
		fails()
		require.Equal(t, maintenance.LeaseRefused, state.Lease)
		require.Contains(t, state.LeaseError, "down")
		require.Zero(t, state.LeaseErrors, "which only a refusal is")

		rule.Remove()
		state = s.until(state, maintenance.Succeeded)
		require.Nil(t, s.Pod("shop", "late"))
		require.Equal(t, maintenance.LeaseHeld, state.Lease)
		require.Empty(t, state.Error)
		require.Equal(t, []maintenance.Step{maintenance.Begin, maintenance.Succeed}, s.steps, "it is no news")
	})
}

// Another has the lease by what the watch shows, and nobody can ask: what waits for a budget stays where it is.
func TestNothingGoesWhileTheLeaseMayBeAnothers(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.AddBudget("shop", "web", app, 2)
		s.watch()
		state := s.start(s.start(maintenance.State{}))
		s.Fail(mt.On("get", "leases"), apierrors.NewInternalError(errors.New("down")))
		s.steal()
		synctest.Wait()
		state = s.start(state)
		require.Equal(t, maintenance.LeaseRefused, state.Lease)
		require.Contains(t, state.Error, "down")
		s.ClearRequests()
		s.SetDisruptionsAllowed("shop", "web", 1)
		synctest.Wait()
		require.Empty(t, s.Matching(mt.On("create", "pods/eviction")))
	}, webPod(), mt.Pod("shop", "web-1", "n1", mt.Labels(app), mt.OfReplicaSet("web")))
}

// keeps is an API server that keeps a part of every node's spec as it was, as a webhook may have it.
type keeps struct {
	http.RoundTripper
	part string
}

func (k keeps) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPatch {
		return k.RoundTripper.RoundTrip(r)
	}
	var patch map[string]any
	if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
		return nil, err
	}
	if spec, ok := patch["spec"].(map[string]any); ok {
		delete(spec, k.part)
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return k.RoundTripper.RoundTrip(r)
}

func TestNotSucceededWhileAMarkIsNotKept(t *testing.T) {
	for part, mark := range map[string]maintenance.Mark{"taints": maintenance.MarkTaint, "unschedulable": maintenance.MarkCordon} {
		t.Run(part, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				s.Disable(mt.UnschedulableTaint)
				cfg := s.Config()
				cfg.Transport = keeps{cfg.Transport, part}
				client, err := kubernetes.NewForConfig(cfg)
				require.NoError(t, err)
				e := maintenance.New(client, maintenance.Options{OnTransition: s.onTransition})
				var state maintenance.State
				for began := time.Now(); time.Since(began) < time.Minute; advance(state.RetryAfter) {
					state, err = e.Start(t.Context(), "n1", state)
					require.NoError(t, err)
					require.Equal(t, maintenance.Running, state.Phase)
					require.Contains(t, state.Error, string(mark))
					require.LessOrEqual(t, state.RetryAfter, maintenance.HoldDelay)
				}
				require.LessOrEqual(t, len(s.Matching(mt.On("patch", "nodes"))), 16, "once in 5 s")
			})
		})
	}
}
