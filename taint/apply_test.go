// SPDX-License-Identifier: Apache-2.0

package taint_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
	"github.com/nodemaint/nodemaint/taint"
)

func tainted(name string, taints ...corev1.Taint) *corev1.Node {
	n := mt.Node(name)
	n.Spec.Taints = taints
	return n
}

func TestAddAndRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mt.New(mt.Options{}, tainted("n1", gpu, zone))
		defer c.Close()

		require.NoError(t, taint.Add(t.Context(), c.Client(), "n1", taint.Drain(), taint.Unschedulable()))
		require.Equal(t, "[gpu zone medik8s.io/drain node.kubernetes.io/unschedulable]", keys(c.Node("n1")))
		require.Equal(t, gpu.Value, c.Node("n1").Spec.Taints[0].Value)
		require.True(t, added.Equal(c.Node("n1").Spec.Taints[0].TimeAdded), "timeAdded is kept")

		c.ClearRequests()
		require.NoError(t, taint.Add(t.Context(), c.Client(), "n1", taint.Drain()))
		require.Empty(t, c.Writes(), "nothing changes, nothing is written")

		require.NoError(t, taint.Remove(t.Context(), c.Client(), "n1", taint.Drain(), taint.Unschedulable()))
		require.Equal(t, "[gpu zone]", keys(c.Node("n1")))
		require.Len(t, c.Writes(), 1, "one write for all of them")
		require.NoError(t, taint.Remove(t.Context(), c.Client(), "n1", taint.Drain()))
		require.Len(t, c.Writes(), 1)
	})
}

func TestAddMeetsAnotherWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mt.New(mt.Options{}, tainted("n1", gpu))
		defer c.Close()
		others := 0
		c.OnRequest(func(r mt.Request) error {
			if r.Verb == "patch" && others < 6 { // between our read and our write
				others++
				c.EditNode("n1", func(n *corev1.Node) {
					n.Spec.Taints = append(n.Spec.Taints, with(fmt.Sprintf("other-%d", others), "", corev1.TaintEffectNoSchedule))
				})
			}
			return nil
		})

		require.NoError(t, taint.Add(t.Context(), c.Client(), "n1", taint.Drain()))

		require.Equal(t, "[gpu other-1 other-2 other-3 other-4 other-5 other-6 medik8s.io/drain]", keys(c.Node("n1")))
	})
}

func TestApplyErrors(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("nodes"), "n1", errors.New("no"))
	for _, tt := range []struct {
		reason string
		fault  func(*mt.Cluster)
		node   string
		is     func(error) bool
		says   string
	}{
		{"no such node", func(*mt.Cluster) {}, "n2", apierrors.IsNotFound, `getting node "n2" to change its taints`},
		{"a read is refused", func(c *mt.Cluster) { c.Fail(mt.On("get", "nodes"), forbidden) }, "n1", apierrors.IsForbidden, `getting node "n1"`},
		{"a write is refused", func(c *mt.Cluster) { c.Fail(mt.On("patch", "nodes"), forbidden) }, "n1", apierrors.IsForbidden, `patching taints of node "n1"`},
		{
			"conflicts that do not end", func(c *mt.Cluster) {
				c.Fail(mt.On("patch", "nodes"), apierrors.NewConflict(corev1.Resource("nodes"), "n1", errors.New("again")))
			}, "n1", apierrors.IsConflict, `patching taints of node "n1"`,
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := mt.New(mt.Options{}, mt.Node("n1"))
				defer c.Close()
				tt.fault(c)
				err := taint.Add(t.Context(), c.Client(), tt.node, taint.Drain())
				require.ErrorContains(t, err, tt.says)
				require.True(t, tt.is(err), "%v", err)
			})
		})
	}
}

func keys(n *corev1.Node) string {
	out := []string{}
	for _, t := range n.Spec.Taints {
		out = append(out, t.Key)
	}
	return fmt.Sprint(out)
}
