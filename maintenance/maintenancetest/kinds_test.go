// SPDX-License-Identifier: Apache-2.0

package maintenancetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// client is what the typed clients of all kinds have in common.
type client[T, L any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// lifeOf takes one object through the verbs, and through an ended context.
func lifeOf[T metav1.Object, L metav1.ListInterface](t *testing.T, kind string, k client[T, L], o T) {
	t.Run(kind, func(t *testing.T) {
		made, err := k.Create(t.Context(), o, metav1.CreateOptions{})
		require.NoError(t, err)
		made.SetLabels(map[string]string{"a": "b"})
		next, err := k.Update(t.Context(), made, metav1.UpdateOptions{})
		require.NoError(t, err)
		got, err := k.Get(t.Context(), o.GetName(), metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, next, got)
		list, err := k.List(t.Context(), metav1.ListOptions{LabelSelector: "a=b", FieldSelector: "metadata.name=" + o.GetName()})
		require.NoError(t, err)
		require.Equal(t, got.GetResourceVersion(), list.GetResourceVersion(), "nothing has happened since")

		ended, end := context.WithCancel(t.Context())
		end()
		_, err = k.Get(ended, o.GetName(), metav1.GetOptions{})
		require.ErrorIs(t, err, context.Canceled)
		_, err = k.List(t.Context(), metav1.ListOptions{FieldSelector: "no.such=field"})
		require.True(t, apierrors.IsBadRequest(err), err)
		_, err = k.Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		require.True(t, apierrors.IsBadRequest(err), err)
		require.NoError(t, k.Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}))
		_, err = k.Get(t.Context(), o.GetName(), metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), err)
	})
}

func TestEveryKind(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{})
	core := c.Client().CoreV1()
	meta := metav1.ObjectMeta{Name: "x"}
	lifeOf(t, "node", core.Nodes(), maintenancetest.Node("x"))
	lifeOf(t, "namespace", core.Namespaces(), maintenancetest.Namespace("x"))
	lifeOf(t, "pod", core.Pods("default"), maintenancetest.Pod("", "x", ""))
	lifeOf(t, "secret", core.Secrets("default"), &corev1.Secret{ObjectMeta: meta})
	lifeOf(t, "event", core.Events("default"), &corev1.Event{ObjectMeta: meta})
	lifeOf(t, "lease", c.Client().CoordinationV1().Leases("default"), &coordinationv1.Lease{ObjectMeta: meta})
	lifeOf(t, "budget", c.Client().PolicyV1().PodDisruptionBudgets("default"), maintenancetest.Budget("", "x", web, 1))
	lifeOf(t, "daemon set", c.Client().AppsV1().DaemonSets("default"), maintenancetest.DaemonSet("", "x"))
}

func TestEveryKindOfEviction(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{})
	pods := c.Client().CoreV1().Pods("shop")
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "p"}
	for _, evict := range []func() error{
		func() error { return pods.Evict(t.Context(), &policyv1beta1.Eviction{ObjectMeta: meta}) },
		func() error { return pods.EvictV1beta1(t.Context(), &policyv1beta1.Eviction{ObjectMeta: meta}) },
		func() error { return pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: meta}) },
	} {
		c.Add(maintenancetest.Pod("shop", "p", "n1"))
		require.NoError(t, evict())
		require.Nil(t, c.Pod("shop", "p"))
	}
}

func TestObjects(t *testing.T) {
	p := maintenancetest.Pod("shop", "p", "n1",
		maintenancetest.OfStatefulSet("s"), maintenancetest.Mirror(), maintenancetest.EmptyDir(), maintenancetest.Labels(web))
	require.Equal(t, "StatefulSet", metav1.GetControllerOf(p).Kind)
	require.Contains(t, p.Annotations, corev1.MirrorPodAnnotationKey)
	require.NotNil(t, p.Spec.Volumes[0].EmptyDir)
	require.Equal(t, corev1.PodRunning, p.Status.Phase)

	c := newCluster(t, maintenancetest.Options{})
	c.Add(p, maintenancetest.Pod("shop", "q", "n2", maintenancetest.OfDaemonSet("d")), maintenancetest.Node("n1"), maintenancetest.Node("n2"))
	require.Len(t, c.PodsOn("n1"), 1)
	require.Len(t, c.Nodes(), 2)
	require.Empty(t, c.Leases())
	require.NotNil(t, c.Namespace("shop"), "made along with the pod")
	require.Empty(t, c.Requests(), "none of this is a request")

	was := c.Node("n1")
	was.Labels["mine"] = "x"
	require.NotContains(t, c.Node("n1").Labels, "mine", "getters give copies")
	require.Panics(t, func() { c.Add(maintenancetest.Node("n1")) })
	require.Panics(t, func() { c.EditNode("n9", func(*corev1.Node) {}) })
	require.Nil(t, c.Node("n9"))
}

func TestOthersMayEditAnything(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{})
	c.Add(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "l"}})
	c.EditLease("default", "l", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr("me") })
	require.Equal(t, "me", *c.Lease("default", "l").Spec.HolderIdentity)
	c.AddBudget("shop", "web", web, 1)
	c.DeleteBudget("shop", "web")
	require.Nil(t, c.Budget("shop", "web"))
	c.SetTermination(maintenancetest.Never)
	c.Add(maintenancetest.Pod("shop", "p", "n1"))
	c.DeletePod("shop", "p")
	require.NotNil(t, c.Pod("shop", "p").DeletionTimestamp)
	c.DeletePod("shop", "absent")
	c.FinishPod("shop", "absent")
}

func TestUntil(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{})
	c.Add(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}})
	enough := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, enough)
	defer cancel()
	require.ErrorIs(t, c.Until(ctx, func() bool { return false }), enough)
	hold := c.HoldWrite(1)
	done := make(chan error, 1)
	go func() { done <- label(t.Context(), c.Client(), "n1", "a") }()
	require.NoError(t, c.Until(t.Context(), func() bool { return len(c.InFlight(nil)) == 1 }))
	c.Add(maintenancetest.Node("n1"))
	hold.Release()
	require.NoError(t, <-done)
	c.Close()
	c.Close()
	require.Error(t, c.Until(t.Context(), func() bool { return false }))
}

func TestDiscoveryFindsEvictions(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{})
	list, err := c.Client().Discovery().ServerResourcesForGroupVersion("v1")
	require.NoError(t, err)
	var names []string
	for _, r := range list.APIResources {
		names = append(names, r.Name)
	}
	require.Contains(t, names, "pods/eviction", "kubectl's drain helper looks for it")
}
