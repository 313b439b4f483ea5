// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// A node that is odd in every way an API server allows is given back as it was, after pods that are odd too have left.
func TestOddNode(t *testing.T) {
	for _, row := range []struct {
		reason string
		odd    func(*corev1.Node)
	}{
		{"1,000 taints", func(n *corev1.Node) {
			for i := range 1000 {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{
					Key: fmt.Sprintf("example.com/%d", i), Value: fmt.Sprint(i), Effect: []corev1.TaintEffect{"NoSchedule", "PreferNoSchedule", "NoExecute"}[i%3],
				})
			}
		}},
		{"the longest keys and values, and 200 kB of them", func(n *corev1.Node) {
			n.Labels = map[string]string{strings.Repeat("p", 253) + "/" + strings.Repeat("k", 63): strings.Repeat("v", 63)}
			n.Annotations = map[string]string{"example.com/words": strings.Repeat("ж𝄞\u202e\n", 20_000), maintenance.RecordAnnotation + "-": "{{{"}
		}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			ns := strings.Repeat("n", 63)
			onStage(t, func(t *testing.T, s *stage) {
				s.EditNode("n1", row.odd)
				before := s.Node("n1")
				state := s.until(maintenance.State{}, maintenance.Succeeded)
				require.Equal(t, 2, state.Progress.Eviction)
				require.Empty(t, s.PodsOn("n1"))

				s.stop()

				require.Equal(t, looks(before), looks(s.Node("n1")))
			},
				mt.Namespace(ns), mt.Pod(ns, strings.Repeat("p", 253), "n1"), mt.Pod(ns, strings.Repeat("q", 63), "n1", mt.OfReplicaSet(strings.Repeat("r", 253))))
		})
	}
}

// The longest names that a node and its lease can have.
func TestLongestNames(t *testing.T) {
	for _, length := range []int{63, 248} {
		synctest.Test(t, func(t *testing.T) {
			name := strings.Repeat("n", length)
			c := mt.New(mt.Options{}, mt.Node(name), mt.Namespace("shop"), mt.Pod("shop", strings.Repeat("p", 253), name))
			defer c.Close()
			e := maintenance.New(c.Client(), maintenance.Options{})

			var state maintenance.State
			for range 2 {
				var err error
				state, err = e.Start(t.Context(), name, state)
				require.NoError(t, err)
			}
			require.Equal(t, maintenance.Succeeded, state.Phase)
			require.NotNil(t, c.Lease(leaseNS, "node-"+name))

			restored, err := e.Stop(t.Context(), name)
			require.NoError(t, err)
			require.True(t, restored.Uncordoned)
			require.Nil(t, c.Lease(leaseNS, "node-"+name))
		})
	}
}
