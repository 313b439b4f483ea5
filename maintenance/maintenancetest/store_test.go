// SPDX-License-Identifier: Apache-2.0

package maintenancetest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// status is the HTTP code of an answer; 0 is success.
func status(err error) int {
	if err == nil {
		return 0
	}
	if s, ok := err.(apierrors.APIStatus); ok {
		return int(s.Status().Code)
	}
	return -1
}

func newCluster(t *testing.T, o maintenancetest.Options) *maintenancetest.Cluster {
	t.Helper()
	c := maintenancetest.New(o)
	t.Cleanup(c.Close)
	return c
}

func TestCreateSetsMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, maintenancetest.Options{})
		leases := c.Client().CoordinationV1().Leases("default")
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(1234567 * time.Nanosecond)}
		a, err := leases.Create(t.Context(), l, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, a.UID)
		require.NotEmpty(t, a.ResourceVersion)
		require.True(t, a.CreationTimestamp.Time.Equal(time.Now()))
		require.Zero(t, a.Generation, "leases have none")
		require.Equal(t, 1234*time.Microsecond, time.Until(a.Spec.RenewTime.Time), "cut to microseconds")
		require.Empty(t, l.UID, "the caller's object is not touched")

		_, err = leases.Create(t.Context(), l, metav1.CreateOptions{})
		require.True(t, apierrors.IsAlreadyExists(err), err)
		_, err = leases.Create(t.Context(), a, metav1.CreateOptions{})
		require.True(t, apierrors.IsBadRequest(err), "resourceVersion set: %v", err)

		g1, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{GenerateName: "g-"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		g2, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{GenerateName: "g-"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NotEqual(t, g1.Name, g2.Name)

		p, err := c.Client().CoreV1().Pods("default").Create(t.Context(), maintenancetest.Pod("", "p", "n1"), metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, corev1.PodPending, p.Status.Phase)
		require.Equal(t, int64(1), p.Generation)

		_, err = c.Client().CoordinationV1().Leases("nowhere").Create(t.Context(), l, metav1.CreateOptions{})
		require.True(t, apierrors.IsNotFound(err), err)
		require.ErrorContains(t, err, `namespaces "nowhere" not found`)
	})
}

func TestConflicts(t *testing.T) {
	const stale, missing = "1", "00000000-0000-4000-8000-ffffffffffff"
	patch := func(pt types.PatchType, body string) func(*testing.T, *maintenancetest.Cluster) error {
		return func(t *testing.T, c *maintenancetest.Cluster) error {
			now := c.Node("n1").ResourceVersion
			_, err := c.Client().CoreV1().Nodes().Patch(t.Context(), "n1", pt, []byte(strings.ReplaceAll(body, "NOW", now)), metav1.PatchOptions{})
			return err
		}
	}
	update := func(f func(*corev1.Node)) func(*testing.T, *maintenancetest.Cluster) error {
		return func(t *testing.T, c *maintenancetest.Cluster) error {
			n := c.Node("n1")
			n.Spec.Unschedulable = true
			f(n)
			_, err := c.Client().CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
			return err
		}
	}
	del := func(p *metav1.Preconditions) func(*testing.T, *maintenancetest.Cluster) error {
		return func(t *testing.T, c *maintenancetest.Cluster) error {
			return c.Client().CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{Preconditions: p})
		}
	}
	old, uid := stale, types.UID(missing)
	for _, tt := range []struct {
		reason string
		do     func(*testing.T, *maintenancetest.Cluster) error
		want   int
	}{
		{"an update from the latest version passes", update(func(*corev1.Node) {}), 0},
		{"an update from an old version does not", update(func(n *corev1.Node) { n.ResourceVersion = stale }), 409},
		{"a node may be updated without a version", update(func(n *corev1.Node) { n.ResourceVersion = "" }), 0},
		{"an update of another node of that name", update(func(n *corev1.Node) { n.UID = missing }), 409},
		{"an update of a missing node", update(func(n *corev1.Node) { n.Name = "n2" }), 404},
		{"a merge patch without a version", patch(types.MergePatchType, `{"spec":{"unschedulable":true}}`), 0},
		{"a merge patch of the latest version", patch(types.MergePatchType, `{"metadata":{"resourceVersion":"NOW"},"spec":{"unschedulable":true}}`), 0},
		{"a merge patch of an old version", patch(types.MergePatchType, `{"metadata":{"resourceVersion":"1"},"spec":{"unschedulable":true}}`), 409},
		{"a strategic patch of an old version", patch(types.StrategicMergePatchType, `{"metadata":{"resourceVersion":"1"},"spec":{"unschedulable":true}}`), 409},
		{"a JSON patch of an old version", patch(types.JSONPatchType, `[{"op":"replace","path":"/metadata/resourceVersion","value":"1"}]`), 409},
		{"a JSON patch whose test fails", patch(types.JSONPatchType, `[{"op":"test","path":"/metadata/name","value":"x"}]`), 422},
		{"a patch that names another UID", patch(types.MergePatchType, `{"metadata":{"uid":"`+missing+`"}}`), 422},
		{"a patch that is no JSON", patch(types.MergePatchType, `{`), 400},
		{"server-side apply is not there", patch(types.ApplyPatchType, `{}`), 415},
		{"a delete of another UID", del(&metav1.Preconditions{UID: &uid}), 409},
		{"a delete of an old version", del(&metav1.Preconditions{ResourceVersion: &old}), 409},
		{"a delete without preconditions", del(nil), 0},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			c := newCluster(t, maintenancetest.Options{})
			c.Add(maintenancetest.Node("n1"))
			err := tt.do(t, c)
			require.Equal(t, tt.want, status(err), "%v", err)
		})
	}
}

func TestLeaseUpdates(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{})
	leases := c.Client().CoordinationV1().Leases("default")
	made, err := leases.Update(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.UpdateOptions{})
	require.NoError(t, err, "an update without UID creates a lease")
	require.NotEmpty(t, made.UID)
	made.ResourceVersion = ""
	_, err = leases.Update(t.Context(), made, metav1.UpdateOptions{})
	require.True(t, apierrors.IsInvalid(err), "a lease needs a version: %v", err)
	c.DeleteLease("default", "a")
	_, err = leases.Update(t.Context(), made, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "it was deleted meanwhile: %v", err)
}

func TestNothingNewMakesNoEvent(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{})
	c.Add(maintenancetest.Node("n1"))
	was := c.ResourceVersion()
	nodes := c.Client().CoreV1().Nodes()
	_, err := nodes.Update(t.Context(), c.Node("n1"), metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = nodes.Patch(t.Context(), "n1", types.MergePatchType, []byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	c.EditNode("n1", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{} })
	require.Equal(t, was, c.ResourceVersion())
}

func TestSpecAndStatusAreApart(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{})
	c.Add(maintenancetest.Pod("default", "p", "n1"))
	pods := c.Client().CoreV1().Pods("default")
	p := c.Pod("default", "p")
	p.Spec.Hostname, p.Status.Phase = "h", corev1.PodFailed
	p, err := pods.Update(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.PodRunning, p.Status.Phase)
	require.Equal(t, "h", p.Spec.Hostname)
	require.Equal(t, int64(2), p.Generation)

	p.Spec.Hostname, p.Status.Phase = "i", corev1.PodFailed
	p, err = pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.PodFailed, p.Status.Phase)
	require.Equal(t, "h", p.Spec.Hostname)
	require.Equal(t, int64(2), p.Generation)
}

func TestFinalizersHoldAnObject(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{})
	n := maintenancetest.Node("n1")
	n.Finalizers = []string{"a/b"}
	c.Add(n)
	nodes := c.Client().CoreV1().Nodes()
	require.NoError(t, nodes.Delete(t.Context(), "n1", metav1.DeleteOptions{}))
	require.NotNil(t, c.Node("n1").DeletionTimestamp)
	_, err := nodes.Patch(t.Context(), "n1", types.MergePatchType, []byte(`{"metadata":{"finalizers":["a/b","c/d"]}}`), metav1.PatchOptions{})
	require.Equal(t, 422, status(err), "no new finalizers: %v", err)
	_, err = nodes.Patch(t.Context(), "n1", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Nil(t, c.Node("n1"))
}

func TestOtherKindsWorkToo(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{})
	maps := c.Client().CoreV1().ConfigMaps("default")
	_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: map[string]string{"a": "b"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	list, err := maps.List(t.Context(), metav1.ListOptions{LabelSelector: "a=b"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.NotEmpty(t, list.ResourceVersion)
	w, err := maps.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, "m", (<-w.ResultChan()).Object.(*corev1.ConfigMap).Name)
	w.Stop()
	require.NoError(t, maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	_, err = maps.Get(t.Context(), "m", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), err)

	_, err = c.Client().Discovery().ServerVersion()
	require.NoError(t, err, "what the store does not know is the fake's own business")
	require.Nil(t, c.Client().PolicyV1().RESTClient())
}

func TestCollectGarbage(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{})
	c.Add(maintenancetest.Node("n1"))
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "l"}}
	l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: c.Node("n1").UID}}
	c.Add(l)
	require.Zero(t, c.CollectGarbage())
	c.DeleteNode("n1")
	require.Equal(t, 1, c.CollectGarbage())
	require.Nil(t, c.Lease("default", "l"))
}
