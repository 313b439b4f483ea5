// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
	"github.com/nodemaint/nodemaint/taint"
)

// run follows a maintenance until done says so, and returns the last state. It fails the test if the
// maintenance ends before or takes longer than a minute of the bubble's time.
func run(t *testing.T, e *maintenance.Engine, node string, done func(maintenance.State) bool) maintenance.State {
	t.Helper()
	var last maintenance.State
	began := time.Now()
	for state, err := range e.Run(t.Context(), node) {
		require.NoError(t, err)
		if last = state; done(state) {
			return state
		}
		require.Less(t, time.Since(began), time.Minute, "still %+v", state)
	}
	require.Fail(t, "the maintenance ended", "%+v", last)
	return last
}

func inPhase(p maintenance.Phase) func(maintenance.State) bool {
	return func(s maintenance.State) bool { return s.Phase == p }
}

func TestMainJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mt.New(mt.Options{Termination: time.Second, Controllers: []mt.Controller{mt.UnschedulableTaint}},
			mt.Node("n1"), mt.Node("n2"), mt.DaemonSet("kube-system", "proxy"),
			mt.Pod("shop", "web-0", "n1", mt.OfStatefulSet("web")),
			mt.Pod("shop", "web-1", "n2", mt.OfStatefulSet("web")),
			mt.Pod("shop", "lone", "n1", mt.EmptyDir()),
			mt.Pod("kube-system", "proxy-x", "n1", mt.OfDaemonSet("proxy")),
			mt.Pod("kube-system", "etcd-n1", "n1", mt.Mirror()))
		defer c.Close()
		before := c.Node("n1")
		e := maintenance.New(c.Client(), maintenance.Options{})

		state := run(t, e, "n1", inPhase(maintenance.Succeeded))

		require.Equal(t, maintenance.Progress{Recorded: true, Total: 4, Eviction: 2, Pending: 0}, state.Progress)
		require.Equal(t, 100, state.Progress.Percent())
		require.Empty(t, state.Error)
		n := c.Node("n1")
		require.True(t, n.Spec.Unschedulable)
		require.True(t, taint.Has(n.Spec.Taints, taint.Drain()))
		require.Equal(t, "true", n.Labels[maintenance.ExcludeLabel])
		require.JSONEq(t, `{"v":1,"holder":"node-maintenance","unschedulable":false,"taints":[],"label":null,"total":4,"eviction":2}`,
			n.Annotations[maintenance.RecordAnnotation])
		require.Len(t, c.PodsOn("n1"), 2, "DaemonSet and mirror pods stay")
		require.Len(t, c.Matching(mt.On("create", "pods/eviction")), 2, "one eviction for each pod that leaves")
		require.NotNil(t, c.Lease("medik8s-leases", "node-n1"))

		restored, err := e.Stop(t.Context(), "n1")

		require.NoError(t, err)
		require.True(t, restored.Uncordoned)
		after := c.Node("n1")
		require.Equal(t, before.Spec, after.Spec)
		require.Equal(t, before.Labels, after.Labels)
		require.Empty(t, after.Annotations)
		require.Nil(t, c.Lease("medik8s-leases", "node-n1"))
	})
}
