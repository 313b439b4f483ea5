// SPDX-License-Identifier: Apache-2.0

package maintenancetest_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// evict posts an eviction through the typed client.
func evict(ctx context.Context, c *maintenancetest.Cluster, namespace, name string, o *metav1.DeleteOptions) error {
	return c.Client().PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, DeleteOptions: o,
	})
}

func TestInformerFollowsTheNodesPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := maintenancetest.New(maintenancetest.Options{},
			maintenancetest.Node("n1"), maintenancetest.Pod("shop", "web-0", "n1"), maintenancetest.Pod("shop", "web-1", "n2"))
		defer c.Close()

		lw := &cache.ListWatch{}
		pods := c.Client().CoreV1().Pods("")
		lw.ListWithContextFunc = func(ctx context.Context, o metav1.ListOptions) (r runtime.Object, err error) {
			o.FieldSelector = "spec.nodeName=n1"
			return pods.List(ctx, o)
		}
		lw.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (w watch.Interface, err error) {
			o.FieldSelector = "spec.nodeName=n1"
			return pods.Watch(ctx, o)
		}
		store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: lw, ObjectType: &corev1.Pod{}, Handler: cache.ResourceEventHandlerFuncs{},
		})
		done := make(chan struct{})
		go func() { defer close(done); informer.RunWithContext(ctx) }()
		synctest.Wait()
		require.Equal(t, []string{"shop/web-0"}, store.ListKeys())

		c.Add(maintenancetest.Pod("shop", "web-2", "n1"))
		c.EditPod("shop", "web-0", func(p *corev1.Pod) { p.Spec.NodeName = "n2" })
		synctest.Wait()
		require.Equal(t, []string{"shop/web-2"}, store.ListKeys(), "a pod that leaves the selector is deleted")

		require.NoError(t, evict(ctx, c, "shop", "web-2", nil))
		synctest.Wait()
		require.Empty(t, store.ListKeys())
		require.True(t, apierrors.IsNotFound(evict(ctx, c, "shop", "web-2", nil)))
		cancel()
		<-done
	})
}
