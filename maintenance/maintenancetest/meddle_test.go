// SPDX-License-Identifier: Apache-2.0

package maintenancetest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestMeddle(t *testing.T) {
	c := mt.New(mt.Options{}, mt.Node("n1"), mt.Pod("shop", "web", "n1", mt.Labels(map[string]string{"app": "web"})))
	defer c.Close()
	c.AddBudget("shop", "web", map[string]string{"app": "web"}, 1)
	before := c.Node("n1")

	c.Meddle()
	n := c.Node("n1")
	require.Equal(t, mt.Meddled, n.Spec.Taints[0].Key)
	for _, o := range []metav1.Object{n, c.Pod("shop", "web"), c.Budget("shop", "web")} {
		require.Contains(t, o.GetAnnotations(), mt.Meddled, o.GetName())
	}
	require.Contains(t, n.Labels, mt.Meddled)

	c.Unmeddle("n1")
	after := c.Node("n1")
	require.Equal(t, before.Labels, after.Labels)
	require.Empty(t, after.Annotations)
	require.Empty(t, after.Spec.Taints)
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mt.New(mt.Options{})
		defer c.Close()
		stop := c.Heartbeat()
		seen := map[string]bool{}
		for range 5 {
			<-time.After(mt.Beat)
			synctest.Wait()
			seen[c.ResourceVersion()] = true
		}
		require.Len(t, seen, 5)
		stop()
		last := c.ResourceVersion()
		<-time.After(10 * mt.Beat)
		require.Equal(t, last, c.ResourceVersion())
	})
}

func TestNthRead(t *testing.T) {
	errBroken := errors.New("broken")
	c := mt.New(mt.Options{}, mt.Node("n1"))
	defer c.Close()
	rule := c.Fail(mt.NthRead(2), errBroken)
	get := func() error {
		_, err := c.Client().CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		return err
	}
	require.NoError(t, get())
	_, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.ErrorIs(t, err, errBroken)
	require.NoError(t, get())
	require.Equal(t, 1, rule.Hits())
}
