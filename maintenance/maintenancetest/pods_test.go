// SPDX-License-Identifier: Apache-2.0

package maintenancetest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestTermination(t *testing.T) {
	const forever = time.Hour
	for _, tt := range []struct {
		reason  string
		cluster time.Duration
		pod     []maintenancetest.PodOption
		grace   *int64
		lasts   time.Duration
	}{
		{reason: "by default a pod goes at once"},
		{reason: "the cluster says how long", cluster: 3 * time.Second, lasts: 3 * time.Second},
		{reason: "the pod knows better", cluster: 3 * time.Second, pod: []maintenancetest.PodOption{maintenancetest.TerminatesIn(time.Minute)}, lasts: time.Minute},
		{reason: "it may take its own grace", cluster: maintenancetest.OwnGrace, lasts: 30 * time.Second},
		{reason: "or what the request gives it", cluster: maintenancetest.OwnGrace, grace: ptr(int64(7)), lasts: 7 * time.Second},
		{reason: "or never go", cluster: maintenancetest.Never, lasts: forever},
		{reason: "no grace is no grace", cluster: maintenancetest.Never, grace: ptr(int64(0))},
		{reason: "a finished pod gets none", cluster: maintenancetest.Never, pod: []maintenancetest.PodOption{maintenancetest.Phase(corev1.PodFailed)}},
		{reason: "a finalizer holds it", pod: []maintenancetest.PodOption{maintenancetest.Finalizers("a/b")}, lasts: forever},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, maintenancetest.Options{Termination: tt.cluster})
				c.Add(maintenancetest.Pod("shop", "p", "n1", tt.pod...))
				require.NoError(t, c.Client().CoreV1().Pods("shop").Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: tt.grace}))
				if tt.lasts > 0 {
					<-time.After(tt.lasts - 1)
					synctest.Wait()
					require.NotNil(t, c.Pod("shop", "p"))
					require.NotNil(t, c.Pod("shop", "p").DeletionTimestamp)
				}
				if tt.lasts == forever {
					c.FinishPod("shop", "p")
					if p := c.Pod("shop", "p"); p != nil {
						c.EditPod("shop", "p", func(p *corev1.Pod) { p.Finalizers = nil })
					}
				} else if tt.lasts > 0 {
					<-time.After(1)
				}
				synctest.Wait()
				require.Nil(t, c.Pod("shop", "p"))
			})
		})
	}
}

func TestTerminationSeenByAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, maintenancetest.Options{})
		c.Add(maintenancetest.Pod("shop", "p", "n1"))
		w, err := c.Client().CoreV1().Pods("shop").Watch(t.Context(), metav1.ListOptions{ResourceVersion: c.ResourceVersion()})
		require.NoError(t, err)
		require.NoError(t, evict(t.Context(), c, "shop", "p", nil))
		require.Equal(t, []string{"MODIFIED p", "MODIFIED p", "DELETED p"}, kinds(w), "condition, deletionTimestamp, gone")
	})
}

func TestASuccessorOfTheSameNameStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, maintenancetest.Options{Termination: time.Second})
		c.Add(maintenancetest.Pod("shop", "p", "n1"))
		c.DeletePod("shop", "p")
		c.RemovePod("shop", "p")
		c.Add(maintenancetest.Pod("shop", "p", "n2"))
		c.DeletePod("shop", "p")
		<-time.After(time.Second - 1)
		synctest.Wait()
		require.NotNil(t, c.Pod("shop", "p"))
	})
}

func TestTerminationOnAFakeClock(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	c := newCluster(t, maintenancetest.Options{Clock: clk, Termination: time.Minute})
	c.Add(maintenancetest.Pod("shop", "p", "n1"))
	c.DeletePod("shop", "p")
	clk.Step(time.Minute)
	require.NoError(t, c.Until(t.Context(), func() bool { return c.Pod("shop", "p") == nil }))
}

func ptr[T any](v T) *T { return &v }
