// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/maintenance"
	"github.com/nodemaint/nodemaint/taint"
)

func TestTakenOverKeepsItsCount(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.EditNode("n1", func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Spec.Taints = []corev1.Taint{taint.Drain(), taint.Unschedulable()}
			n.Labels = map[string]string{maintenance.ExcludeLabel: "true"}
		})
		l := leaseOf("node-maintenance", time.Now())
		s.Add(l)
		state := s.start(maintenance.State{Phase: maintenance.Running, Progress: maintenance.Progress{Total: 3, Eviction: 7}})
		require.Equal(t, maintenance.Progress{Recorded: true, Total: 1, Eviction: 7, Pending: 1}, state.Progress)
		require.JSONEq(t, `{"v":1,"holder":"node-maintenance","unschedulable":false,"taints":[],"label":null,"total":1,"eviction":7}`, s.record())
		require.True(t, s.stop().Uncordoned)
		n := s.Node("n1")
		require.Empty(t, n.Spec.Taints)
		require.Empty(t, n.Labels)
		require.False(t, n.Spec.Unschedulable)
	}, webPod())
}

func TestHandOver(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.EditNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		other := maintenance.New(s.Client(), maintenance.Options{Lease: manager(s, "sbr")})
		_, err := other.Start(t.Context(), "n1", maintenance.State{})
		require.NoError(t, err)
		require.Contains(t, s.record(), `"holder":"sbr","unschedulable":true`)
		s.DeleteLease(leaseNS, "node-n1") // it lets go without giving back

		state := s.until(maintenance.State{}, maintenance.Succeeded)
		require.Contains(t, s.record(), `"holder":"node-maintenance","unschedulable":true`)
		require.True(t, state.Record.Unschedulable)

		before := looks(s.Node("n1"))
		restored, err := other.Stop(t.Context(), "n1")
		require.NoError(t, err)
		require.Zero(t, restored, "whom the record no longer names changes nothing")
		require.Equal(t, before, looks(s.Node("n1")))
		require.NotNil(t, s.Lease(leaseNS, "node-n1"))

		require.False(t, s.stop().Uncordoned, "what stood there before the first of them stays")
		require.True(t, s.Node("n1").Spec.Unschedulable)
	})
}

// Who had the lease meanwhile may have given the node back; what our state says of it is long past then.
func TestRecordOfANodeThatAnotherGaveBack(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		state := s.until(maintenance.State{}, maintenance.Succeeded)
		s.EditLease(leaseNS, "node-n1", func(l *coordinationv1.Lease) { l.Spec.RenewTime.Time = time.Now().Add(-2 * time.Hour) })
		rival := maintenance.New(s.Client(), maintenance.Options{Lease: manager(s, "rival")})
		_, err := rival.Start(t.Context(), "n1", maintenance.State{})
		require.NoError(t, err)
		_, err = rival.Stop(t.Context(), "n1")
		require.NoError(t, err)
		s.EditNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		before := looks(s.Node("n1"))

		s.until(state, maintenance.Succeeded)
		s.stop()
		require.Equal(t, before, looks(s.Node("n1")), "an administrator has cordoned it since")
	})
}

// A mark that its owner took off before the node changed hands is put on as ours.
func TestHandOverOfANodeThatLacksAMark(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.EditNode("n1", func(n *corev1.Node) { n.Labels[maintenance.ExcludeLabel] = "true" })
		rival := maintenance.New(s.Client(), maintenance.Options{Lease: manager(s, "rival")})
		_, err := rival.Start(t.Context(), "n1", maintenance.State{})
		require.NoError(t, err)
		s.EditNode("n1", func(n *corev1.Node) { delete(n.Labels, maintenance.ExcludeLabel) })
		s.EditLease(leaseNS, "node-n1", func(l *coordinationv1.Lease) { l.Spec.RenewTime.Time = time.Now().Add(-2 * time.Hour) })

		s.until(maintenance.State{}, maintenance.Succeeded)
		held(t, s.Node("n1"))
		s.stop()
		require.NotContains(t, s.Node("n1").Labels, maintenance.ExcludeLabel)
	})
}
