// SPDX-License-Identifier: Apache-2.0

package maintenancetest_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// A real client finds behind Config what the fake one finds behind Client.
func TestConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mt.New(mt.Options{}, mt.Node("n1"), mt.Pod("shop", "web-0", "n1"), mt.Pod("shop", "web-1", "n2"))
		defer c.Close()
		typed, err := kubernetes.NewForConfig(c.Config())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		pods := typed.CoreV1().Pods("shop")
		onNode := metav1.ListOptions{FieldSelector: "spec.nodeName=n1"}

		list, err := pods.List(ctx, onNode)
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
		same(t, c.Pod("shop", "web-0"), &list.Items[0])
		onNode.ResourceVersion = list.ResourceVersion
		w, err := pods.Watch(ctx, onNode)
		require.NoError(t, err)
		defer w.Stop()

		_, err = pods.Patch(ctx, "web-0", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		same(t, c.Pod("shop", "web-0"), (<-w.ResultChan()).Object)
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}, DeleteOptions: metav1.NewPreconditionDeleteOptions("another")}
		err = typed.PolicyV1().Evictions("shop").Evict(ctx, eviction)
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.NoError(t, pods.Delete(ctx, "web-0", metav1.DeleteOptions{}))
		_, err = pods.Get(ctx, "web-0", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))

		made, err := typed.CoreV1().Namespaces().Create(ctx, mt.Namespace("new"), metav1.CreateOptions{})
		require.NoError(t, err)
		same(t, c.Namespace("new"), made)
		n := c.Node("n1")
		n.Labels["a"] = "b"
		_, err = typed.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.Equal(t, "b", mt.Look[*corev1.Node](c, "", "n1").Labels["a"])

		broken := c.Fail(mt.On("get", "nodes"), nil)
		_, err = typed.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		require.ErrorIs(t, err, mt.ErrInjected)
		broken.Remove()
		require.NoError(t, typed.CoreV1().Pods("shop").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
		require.Empty(t, c.Pods())
		cancel()
		synctest.Wait()
		require.Zero(t, c.Watches("*"))
	})
}

// same compares two objects as the API does.
func same(t *testing.T, want, got runtime.Object) {
	t.Helper()
	require.True(t, equality.Semantic.DeepEqual(want, got), "%v\n%v", want, got)
}

func TestKindsOfOnesOwn(t *testing.T) {
	c := mt.New(mt.Options{}, mt.Node("n1"))
	defer c.Close()
	mt.Edit(c, "", "n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	require.True(t, mt.Look[*corev1.Node](c, "", "n1").Spec.Unschedulable)
	mt.Delete[*corev1.Node](c, "", "n1")
	require.Empty(t, mt.LookAll[*corev1.Node](c))
	require.Panics(t, func() { mt.Look[*metav1.PartialObjectMetadata](c, "", "n1") }, "the scheme knows no resource for it")
}
