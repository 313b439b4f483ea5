// SPDX-License-Identifier: Apache-2.0

package drainer_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/drainer"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func answered(code int32, words string, cause metav1.CauseType) error {
	err := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: words, Details: &metav1.StatusDetails{}}}
	switch code {
	case http.StatusForbidden:
		err.ErrStatus.Reason = metav1.StatusReasonForbidden
	case http.StatusTooManyRequests:
		err.ErrStatus.Reason = metav1.StatusReasonTooManyRequests
	}
	if cause != "" {
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: cause}}
	}
	return err
}

// TestAnswers plays each answer to the eviction of one pod of two: the other leaves all the same, and the
// one is tried again at its time and not before.
func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		reason string
		err    error
		list   string // where the pod is then; empty: nowhere
		words  string
		retry  time.Duration
		looks  bool // the pod is read before the next post
	}{
		{"the namespace goes", answered(403, "namespace shop is being terminated", corev1.NamespaceTerminatingCause), "leaving", "namespace shop is being terminated", 5 * time.Second, false},
		{"throttled, without a time", answered(429, "slow down", ""), "deferred", "slow down", time.Second, false},
		{"throttled for ten seconds", apierrors.NewTooManyRequests("slow down", 10), "deferred", "slow down", 10 * time.Second, false},
		{"500", answered(500, "etcd is sad", ""), "failed", "etcd is sad", 5 * time.Second, true},
		{"503", answered(503, "away", ""), "failed", "away", 5 * time.Second, true},
		{"504", answered(504, "late", ""), "failed", "late", 5 * time.Second, true},
		{"no answer", errors.New("connection reset"), "failed", "connection reset", 5 * time.Second, true},
		{"a webhook denies", answered(400, `admission webhook "w" denied the request: not today`, ""), "failed", `admission webhook "w" denied the request: not today`, 5 * time.Second, false},
		{"no right to evict", answered(403, "may not", ""), "failed", "may not", 5 * time.Second, false},
		{"a webhook denies with 404, but the pod is there", answered(404, "no such thing", ""), "failed", "no such thing", 5 * time.Second, false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
				s.watch("n1")
				fault := s.Fail(evictionOfPods.Named("shop", "web-0"), tt.err)

				r := s.pass("n1")

				require.Equal(t, tt.list, where(r)["shop/web-0"])
				require.Equal(t, tt.words, r.Pending()[0].Reason)
				require.Equal(t, []string{"shop/web-1"}, names(r.Evicted), "the other one goes")
				require.False(t, r.Done())
				require.Equal(t, tt.retry, r.RetryAfter, "when to come again")

				s.ClearRequests()
				advance(tt.retry - time.Millisecond)
				r = s.pass("n1")
				require.Empty(t, s.evictions(), "not before its time")
				require.Equal(t, map[string]string{"shop/web-0": tt.list}, where(r))
				require.Empty(t, r.Evicted)
				require.Equal(t, time.Millisecond, r.RetryAfter)

				advance(time.Millisecond)
				fault.Remove()
				r = s.pass("n1")
				require.Equal(t, []string{"shop/web-0"}, s.evictions())
				require.Equal(t, []string{"shop/web-0"}, names(r.Evicted))
				require.Equal(t, tt.looks, len(s.Matching(mt.On("get", "pods"))) == 1)
				require.True(t, s.pass("n1").Done())
				require.Len(t, s.evictions(), 1)
			}, web(2)...)
		})
	}
}

func TestGone(t *testing.T) {
	pods := func(node string) func(*stage) {
		return func(s *stage) {
			s.RemovePod("shop", "web-0")
			if node != "" {
				s.Add(mt.Pod("shop", "web-0", node, mt.Labels(app), mt.OfStatefulSet("web")))
			}
		}
	}
	for _, tt := range []struct {
		reason string
		act    func(*stage)
		left   int
	}{
		{"404", pods(""), 0},
		{"a StatefulSet's pod of that name came up on another node", pods("n2"), 0},
		{"another pod of that name on this node is a late one", pods("n1"), 1},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
				s.watch("n1")
				done := false
				s.OnRequest(func(r mt.Request) error { // while the eviction is on its way
					if r.Subresource == "eviction" && !done {
						done = true
						tt.act(s)
					}
					return nil
				})

				r := s.pass("n1")

				require.True(t, r.Done(), "%+v", r)
				require.Len(t, s.evictions(), 1, "no eviction of the new pod")
				require.Len(t, s.PodsOn("n1"), tt.left)
				s.settle("n1")
				require.Empty(t, s.PodsOn("n1"), "a late one leaves in the next pass")
				require.Len(t, s.evictions(), 1+tt.left)
			}, mt.Pod("shop", "web-0", "n1", mt.Labels(app), mt.OfStatefulSet("web")))
		})
	}
}

// TestPendingPodIsReplaced has a StatefulSet replace its pod between the list and the eviction.
func TestPendingPodIsReplaced(t *testing.T) {
	for _, node := range []string{"n1", "n2"} {
		t.Run("on "+node, func(t *testing.T) {
			onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
				s.watch("n1")
				s.AddBudget("shop", "web", app, 0)
				s.SetDisruptionsAllowed("shop", "web", 1)
				s.OnRequest(func(r mt.Request) error {
					if r.Subresource == "eviction" {
						s.OnRequest(nil)
						s.RemovePod("shop", "web-0")
						s.Add(mt.Pod("shop", "web-0", node, mt.Labels(app), mt.OfStatefulSet("web"), mt.Phase(corev1.PodPending)))
					}
					return nil
				})
				began := time.Now()
				r := s.pass("n1")
				require.Zero(t, time.Since(began), "no ten seconds of repetition in the API server")
				require.Empty(t, r.Evicted)
				require.NotNil(t, s.Pod("shop", "web-0"), "no eviction of the new pod")
				require.Len(t, s.evictions(), 1)
				require.Equal(t, int32(1), s.Budget("shop", "web").Status.DisruptionsAllowed, "its budget is not spent")
			}, mt.Pod("shop", "web-0", "n1", mt.Labels(app), mt.OfStatefulSet("web"), mt.Phase(corev1.PodPending)))
		})
	}
}

func TestConflictIsLookedAt(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		edits := 0
		s.OnRequest(func(r mt.Request) error {
			if r.Subresource == "eviction" && edits == 0 { // its status moves on meanwhile
				edits++
				s.EditPod("shop", "web-0", func(p *corev1.Pod) { p.Status.Message = "pulling" })
			}
			return nil
		})
		r := s.pass("n1")
		require.Equal(t, []string{"shop/web-0"}, names(r.Evicted), "posted again with the fresh version")
		require.Empty(t, s.PodsOn("n1"))
		require.Len(t, s.evictions(), 2)
	}, mt.Pod("shop", "web-0", "n1", mt.Phase(corev1.PodPending)))

	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.Fail(evictionOfPods, apierrors.NewConflict(corev1.Resource("pods"), "web-0", errors.New("again"))).Times(3)
		r := s.pass("n1")
		require.Equal(t, map[string]string{"shop/web-0": "deferred"}, where(r), "conflicts that do not end are no failure")
		require.Empty(t, r.Deferred[0].Reason)
		require.Equal(t, time.Second, r.RetryAfter)
		advance(time.Second)
		require.Len(t, s.pass("n1").Evicted, 1)
	}, mt.Pod("shop", "web-0", "n1"))

	onStage(t, mt.Options{Termination: mt.Never}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		began := time.Now()
		s.OnRequest(func(r mt.Request) error {
			if r.Subresource == "eviction" {
				s.OnRequest(nil)
				s.DeletePod("shop", "web-0")
			}
			return nil
		})
		r := s.pass("n1")
		require.Equal(t, map[string]string{"shop/web-0": "leaving"}, where(r), "somebody deleted it meanwhile")
		require.Zero(t, time.Since(began), "no ten seconds of repetition in the API server")
		require.Len(t, s.evictions(), 1)
	}, mt.Pod("shop", "web-0", "n1", mt.Phase(corev1.PodPending)))
}

func TestAnswerLost(t *testing.T) {
	onStage(t, mt.Options{Termination: mt.Never}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.PauseWatches("pods")
		s.Lose(evictionOfPods, errors.New("connection reset"))
		require.Equal(t, map[string]string{"shop/web-0": "failed"}, where(s.pass("n1")))
		advance(5 * time.Second)
		r := s.pass("n1")
		require.Equal(t, map[string]string{"shop/web-0": "leaving"}, where(r), "a look shows that it took effect")
		require.Len(t, s.evictions(), 1)
		s.ResumeWatches("pods")
	}, mt.Pod("shop", "web-0", "n1"))

	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.Fail(evictionOfPods, errors.New("connection reset")).Times(1)
		s.pass("n1")
		s.Fail(mt.On("get", "pods"), errors.New("still away")).Times(1)
		advance(5 * time.Second)
		r := s.pass("n1")
		require.Equal(t, "getting the pod: still away", r.Failed[0].Reason)
		require.Len(t, s.evictions(), 1, "nothing is posted that may have taken effect")
	}, mt.Pod("shop", "web-0", "n1"))
}

func TestPreconditions(t *testing.T) {
	for _, tt := range []struct {
		phase   corev1.PodPhase
		version bool
	}{
		{corev1.PodRunning, false}, {corev1.PodPending, true}, {corev1.PodSucceeded, true}, {corev1.PodFailed, true}, {corev1.PodUnknown, true},
	} {
		t.Run(string(tt.phase), func(t *testing.T) {
			onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
				pod := s.Pod("shop", "web-0")
				r := s.pass("n1")
				if !r.Done() {
					r = s.pass("n1")
				}
				require.True(t, r.Done(), "in the next pass or the one after")
				_, e := s.eviction(0)
				require.Equal(t, pod.UID, *e.DeleteOptions.Preconditions.UID, "the UID always")
				require.Nil(t, e.DeleteOptions.GracePeriodSeconds, "the pod's own grace period")
				if tt.version {
					require.Equal(t, pod.ResourceVersion, *e.DeleteOptions.Preconditions.ResourceVersion)
				} else {
					require.Nil(t, e.DeleteOptions.Preconditions.ResourceVersion)
				}
			}, mt.Pod("shop", "web-0", "n1", mt.Phase(tt.phase)))
		})
	}
}

// A conflict is looked at again at once. What goes on answering with one, as a webhook may, is no collision: it is
// tried as seldom as any other refusal, and told.
func TestConflictsWithoutEnd(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.Fail(evictionOfPods, apierrors.NewConflict(corev1.Resource("pods"), "web-0", errors.New("still migrating")))
		require.Empty(t, s.pass("n1").Deferred[0].Reason, "another writer may have been faster")
		var r drainer.Report
		for began := time.Now(); time.Since(began) < time.Minute; <-time.After(r.RetryAfter) {
			r = s.pass("n1")
		}
		s.ClearRequests()
		for began := time.Now(); time.Since(began) < time.Minute; <-time.After(r.RetryAfter) {
			r = s.pass("n1")
			require.Empty(t, r.Failed)
			require.Contains(t, r.Deferred[0].Reason, "still migrating")
		}
		require.LessOrEqual(t, len(s.Matching(evictionOfPods)), 12)
	}, mt.Pod("shop", "web-0", "n1"))
}

// A call that ends with the watch that it was made under says nothing of the pod.
func TestCallBrokenOffByTheEndOfItsWatch(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		end := s.watch("n1")
		hold := s.Hold(evictionOfPods)
		s.pass("n1")
		end()
		s.watch("n1") // the next one's
		hold.Remove()
		s.ClearRequests()
		r := s.pass("n1")
		require.Empty(t, r.Failed)
		require.Len(t, s.Matching(mt.On("get", "pods")), 1, "it may have taken effect")
		require.Len(t, s.Matching(evictionOfPods), 1, "at once")
	}, mt.Pod("shop", "web-0", "n1"))
}
