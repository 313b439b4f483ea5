// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/maintenance"
)

// Between two failures that count nothing else may move the time from which the next is counted.
func TestLeaseLostToABusyHolder(t *testing.T) {
	for _, row := range []struct {
		reason string
		stir   func(s *stage, second int)
	}{
		{"the other renews each second, and words that name its end change with it", func(s *stage, _ int) { s.steal() }},
		{"the node's readiness flaps meanwhile", func(s *stage, second int) {
			s.EditNode("n1", func(n *corev1.Node) {
				n.Status.Conditions = []corev1.NodeCondition{{
					Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.Unix(int64(second), 0),
				}}
			})
		}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				s.watch()
				state := s.start(maintenance.State{})
				s.steal()
				began := time.Now()
				for second := 1; !state.Done(); second++ {
					require.Less(t, time.Since(began), time.Minute, "it never gives up")
					state = s.start(state)
					advance(time.Second)
					row.stir(s, second)
				}
				require.Equal(t, maintenance.LeaseLost, state.Failure)
				require.InDelta(t, 15, time.Since(began).Seconds(), 2)
			})
		})
	}
}

// The process before this one may have had a clock that was ahead.
func TestLeaseLostUnderAnotherClock(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		s.steal()
		state = s.start(state)
		state.Updated = time.Now().Add(time.Hour)
		began := time.Now()
		for !state.Done() {
			state = s.start(state)
			require.LessOrEqual(t, state.RetryAfter, maintenance.LeaseRetry)
			advance(maintenance.LeaseRetry)
		}
		require.Equal(t, maintenance.LeaseLost, state.Failure)
		require.Less(t, time.Since(began), time.Minute)
	})
}
