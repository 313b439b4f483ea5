// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestNoSuchNode(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		state, err := s.Start(t.Context(), "n9", maintenance.State{})
		require.NoError(t, err)
		require.Equal(t, maintenance.Failed, state.Phase)
		require.Equal(t, maintenance.NodeNotFound, state.Failure)
		require.Equal(t, `nodes "n9" not found`, state.Error)
		require.True(t, state.Done())
		require.Zero(t, state.RetryAfter)
		require.Equal(t, []maintenance.Step{maintenance.Fail}, s.steps)

		s.ClearRequests()
		again, err := s.Start(t.Context(), "n9", state)
		require.NoError(t, err)
		require.Equal(t, state, again)
		require.Empty(t, s.Requests(), "no retry")
		_, err = s.Stop(t.Context(), "n9")
		require.NoError(t, err)
		require.Empty(t, s.Writes())
		require.Len(t, s.steps, 1)
	})
}

func TestInvalidNames(t *testing.T) {
	for _, tt := range []struct{ name, says string }{
		{"", "node name is empty"},
		{strings.Repeat("n", 254), "node name of 254 characters is too long: at most 253 are allowed"},
		{strings.Repeat("n", 249), "lease name would be too long"},
		{"a/b", `node name "a/b" is invalid: it may not contain '/'`},
		{"..", `node name ".." is invalid`},
	} {
		onStage(t, func(t *testing.T, s *stage) {
			state, err := s.Start(t.Context(), tt.name, maintenance.State{})
			require.NoError(t, err)
			require.Equal(t, maintenance.Failed, state.Phase)
			require.Equal(t, maintenance.InvalidNodeName, state.Failure)
			require.Contains(t, state.Error, tt.says)
			require.Equal(t, time.Now(), state.Updated)
			restored, err := s.Stop(t.Context(), tt.name)
			require.NoError(t, err, "deletable")
			require.Zero(t, restored)
			require.Empty(t, s.Requests())
		})
	}
}

func TestNodeGoesAndComesBack(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.watch()
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		s.DeleteNode("n1")
		synctest.Wait()
		s.ClearRequests()
		for range 3 {
			next := s.start(state)
			require.Equal(t, maintenance.Succeeded, next.Phase, "it waits for garbage collection")
			require.Zero(t, next.RetryAfter)
			require.Equal(t, state.Updated, next.Updated)
			state = next
		}
		s.Add(mt.Node("n1"))
		synctest.Wait()
		clean := looks(s.Node("n1"))
		s.start(state)
		require.Empty(t, s.Writes(), "another node of that name is left alone")
		require.Equal(t, clean, looks(s.Node("n1")))
		require.Equal(t, maintenance.Restored{}, s.stop())
		require.Nil(t, s.Lease(leaseNS, "node-n1"), "only the lease is released")
		require.Equal(t, clean, looks(s.Node("n1")))
	})
}

// A node that comes back under its name between two writes of a pass is another machine.
func TestNodeIsReplacedDuringAPass(t *testing.T) {
	for writes := range 2 {
		t.Run(fmt.Sprintf("before write %d", writes), func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				left := writes
				s.OnRequest(func(r mt.Request) error {
					if r.Verb != "patch" {
						return nil
					}
					if left--; left < 0 {
						s.OnRequest(nil)
						s.DeleteNode("n1")
						s.Add(mt.Node("n1"))
					}
					return nil
				})
				_, err := s.Start(t.Context(), "n1", maintenance.State{})
				require.Error(t, err)
				require.Equal(t, mt.Node("n1").Spec, s.Node("n1").Spec, "what was decided for the old one is not done to it")
				require.Empty(t, s.Node("n1").Annotations)
				require.Empty(t, s.Node("n1").Labels[maintenance.ExcludeLabel])
			})
		})
	}
}

func TestNodeGoesDuringAPass(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.watch()
		s.PauseWatches("nodes")
		defer s.ResumeWatches("nodes")
		s.DeleteNode("n1")
		_, err := s.Start(t.Context(), "n1", maintenance.State{})
		require.ErrorContains(t, err, `nodes "n1" not found`)
		require.Nil(t, s.Node("n1"))
	})
	onStage(t, func(t *testing.T, s *stage) {
		s.start(maintenance.State{})
		s.OnRequest(func(r mt.Request) error {
			if r.Verb == "patch" {
				s.OnRequest(nil)
				s.DeleteNode("n1")
			}
			return nil
		})
		require.Zero(t, s.stop(), "a node that goes while it is given back is no error")
	})
}

func TestNotReady(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 5, 1, 8, 23, 41, 0, time.UTC))
	onStage(t, func(t *testing.T, s *stage) {
		s.SetTermination(mt.Never)
		s.EditNode("n1", func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: since}}
		})
		state := s.start(maintenance.State{})
		require.True(t, since.Time.Equal(state.NotReadySince))
		cause, text := state.Explain()
		require.Equal(t, maintenance.CauseNodeNotReady, cause)
		require.Contains(t, text, "the node is not ready since 08:23:41Z")
		require.Empty(t, state.Error, "pods only take their time")
	}, webPod())
}
