// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A cluster that begins with another's data has its nodes and pods, and they live.
func TestBeginWithData(t *testing.T) {
	first, err := Start(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "first")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, first.Stop()) })
	w := world{first, t, metav1.NamespaceDefault}
	require.NoError(t, w.AddNode(t.Context(), "n", NodeOptions{}))
	w.pod("p", map[string]string{GoneAfterAnnotation: "0s"}, func(p *corev1.Pod) { p.Spec.NodeName = "n" })
	w.running("p")
	before, err := w.Client().CoreV1().Pods(w.ns).Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, first.Stop())

	for range 2 { // what it begins with is a copy, so that others can begin with the same
		c, err := Start(t.Context(), Options{Data: first.DataDir()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Stop()) })
		require.NoError(t, c.AwaitNodes(t.Context()))
		w := world{c, t, metav1.NamespaceDefault}
		now, err := w.Client().CoreV1().Pods(w.ns).Get(t.Context(), "p", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, before.UID, now.UID)
		w.running("p")
		w.delete("p")
		w.gone("p")
		w.pod("q", nil)
		w.running("q")
		require.NoError(t, c.Stop())
	}
}
