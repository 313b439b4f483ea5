// SPDX-License-Identifier: Apache-2.0

package maintenancetest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func label(ctx context.Context, k kubernetes.Interface, node, name string) error {
	_, err := k.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:"x"}}}`, name), metav1.PatchOptions{})
	return err
}

func TestWritesAreNumbered(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{})
	c.Add(maintenancetest.Node("n1"))
	require.NoError(t, label(t.Context(), c.Client(), "n1", "a"))
	_, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=n1"})
	require.NoError(t, err)
	require.Error(t, label(t.Context(), c.Client(), "n2", "b"))
	got := c.Requests()
	require.Len(t, got, 3)
	require.Equal(t, "#1 patch nodes n1", got[0].String())
	require.JSONEq(t, `{"metadata":{"labels":{"a":"x"}}}`, string(got[0].Patch))
	require.Equal(t, "list nodes", got[1].String())
	require.Equal(t, "metadata.name=n1", got[1].FieldSelector)
	require.Equal(t, `#2 patch nodes n2: nodes "n2" not found`, got[2].String())
	require.Len(t, c.Writes(), 2)
	require.Len(t, c.Matching(maintenancetest.Reads()), 1)

	n := c.Node("n1")
	_, err = c.Client().CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
	require.NoError(t, err)
	n.Labels["later"] = "x"
	require.NotContains(t, c.Writes()[2].Object.(*corev1.Node).Labels, "later", "the record is a copy")

	c.ClearRequests()
	require.Empty(t, c.Requests())
	require.NoError(t, label(t.Context(), c.Client(), "n1", "b"))
	require.Equal(t, 1, c.Writes()[0].N)
}

func TestRules(t *testing.T) {
	oops := errors.New("oops")
	for _, tt := range []struct {
		reason string
		given  func(*maintenancetest.Cluster)
		errs   []error  // of three writes of labels a, b and c
		labels []string // that are there afterwards
	}{
		{"no rule", func(*maintenancetest.Cluster) {}, []error{nil, nil, nil}, []string{"a", "b", "c"}},
		{"the second write fails", func(c *maintenancetest.Cluster) { c.FailWrite(2, oops) }, []error{nil, oops, nil}, []string{"a", "c"}},
		{"its answer is lost", func(c *maintenancetest.Cluster) { c.LoseWrite(2, nil) }, []error{nil, maintenancetest.ErrInjected, nil}, []string{"a", "b", "c"}},
		{"twice", func(c *maintenancetest.Cluster) { c.Fail(maintenancetest.On("patch", "nodes"), oops).Times(2) }, []error{oops, oops, nil}, []string{"c"}},
		{"for ever", func(c *maintenancetest.Cluster) { c.Fail(maintenancetest.Writes(), oops) }, []error{oops, oops, oops}, nil},
		{"another object", func(c *maintenancetest.Cluster) { c.Fail(maintenancetest.Writes().Named("", "n2"), oops) }, []error{nil, nil, nil}, []string{"a", "b", "c"}},
		{"another subresource", func(c *maintenancetest.Cluster) { c.Fail(maintenancetest.On("*", "nodes/status"), oops) }, []error{nil, nil, nil}, []string{"a", "b", "c"}},
		{"the first of two rules stands", func(c *maintenancetest.Cluster) { c.FailWrite(1, oops); c.FailWrite(1, nil) }, []error{oops, nil, nil}, []string{"b", "c"}},
		{"a crash before the second write", func(c *maintenancetest.Cluster) { c.CrashBefore(2) }, []error{nil, maintenancetest.ErrCrashed, maintenancetest.ErrCrashed}, []string{"a"}},
		{"a crash after it", func(c *maintenancetest.Cluster) { c.CrashAfter(2) }, []error{nil, maintenancetest.ErrCrashed, maintenancetest.ErrCrashed}, []string{"a", "b"}},
		{"removed", func(c *maintenancetest.Cluster) { r := c.CrashBefore(1); r.Remove(); r.Remove() }, []error{nil, nil, nil}, []string{"a", "b", "c"}},
		{
			"a hook", func(c *maintenancetest.Cluster) {
				c.OnRequest(func(r maintenancetest.Request) error {
					if r.N == 3 {
						return oops
					}
					return nil
				})
			}, []error{nil, nil, oops}, []string{"a", "b"},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			c := newCluster(t, maintenancetest.Options{})
			c.Add(maintenancetest.Node("n1"))
			tt.given(c)
			for i, l := range []string{"a", "b", "c"} {
				require.ErrorIs(t, label(t.Context(), c.Client(), "n1", l), tt.errs[i])
			}
			var got []string
			for _, l := range []string{"a", "b", "c"} {
				if _, ok := c.Node("n1").Labels[l]; ok {
					got = append(got, l)
				}
			}
			require.Equal(t, tt.labels, got)
		})
	}
}

func TestCrashLoop(t *testing.T) {
	// A procedure of three writes, the last of which must happen once.
	run := func(ctx context.Context, k kubernetes.Interface) error {
		for _, l := range []string{"a", "b"} {
			if err := label(ctx, k, "n1", l); err != nil {
				return err
			}
		}
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "done"}}
		_, err := k.CoreV1().Events("default").Create(ctx, e, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	for _, crash := range []func(*maintenancetest.Cluster, int) *maintenancetest.Rule{
		(*maintenancetest.Cluster).CrashBefore, (*maintenancetest.Cluster).CrashAfter,
	} {
		n := 1
		for ; ; n++ {
			c := newCluster(t, maintenancetest.Options{})
			c.Add(maintenancetest.Node("n1"))
			rule := crash(c, n)
			err := run(t.Context(), c.Client())
			if rule.Hits() == 0 {
				require.NoError(t, err)
				break
			}
			require.ErrorIs(t, err, maintenancetest.ErrCrashed)
			_, err = c.Client().CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
			require.ErrorIs(t, err, maintenancetest.ErrCrashed, "the dead do not read")
			rule.Remove()
			require.NoError(t, run(t.Context(), c.Client()))
			require.Contains(t, c.Node("n1").Labels, "b")
			require.Len(t, c.Events(), 1)
		}
		require.Equal(t, 4, n)
	}
}

func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, maintenancetest.Options{})
		c.Add(maintenancetest.Node("n1"), maintenancetest.Node("n2"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m"}})
		rule := c.Hold(maintenancetest.Writes().Named("", "n1"))
		ctx, cancel := context.WithCancel(t.Context())
		answers := make(chan error, 2)
		go func() { answers <- label(ctx, c.Client(), "n1", "a") }()
		<-rule.Hit()
		require.Len(t, c.InFlight(maintenancetest.On("patch", "nodes")), 1)
		require.NoError(t, label(t.Context(), c.Client(), "n2", "a"), "others pass")
		cancel()
		require.ErrorIs(t, <-answers, context.Canceled)
		require.Empty(t, c.InFlight(nil))
		require.NotContains(t, c.Node("n1").Labels, "a", "it had no effect")

		go func() { answers <- label(t.Context(), c.Client(), "n1", "b") }()
		synctest.Wait()
		require.Len(t, c.InFlight(nil), 1)
		rule.Release()
		require.NoError(t, <-answers)
		require.Contains(t, c.Node("n1").Labels, "b")
		require.NoError(t, label(t.Context(), c.Client(), "n1", "c"), "released for good")

		// A kind whose client drops the context waits too, and holds up nobody.
		c.Hold(maintenancetest.On("get", "configmaps"))
		maps := c.Client().CoreV1().ConfigMaps("default")
		go func() {
			_, err := maps.Get(t.Context(), "m", metav1.GetOptions{})
			answers <- err
		}()
		synctest.Wait()
		_, err := maps.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		c.Close()
		require.Error(t, <-answers)
	})
}

func TestHoldAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, maintenancetest.Options{})
		c.Add(maintenancetest.Pod("shop", "p", "n1"))
		c.HoldAnswer(maintenancetest.On("create", "pods/eviction"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, evict(ctx, c, "shop", "p", nil), context.DeadlineExceeded)
		require.Nil(t, c.Pod("shop", "p"), "it took effect")
		require.ErrorIs(t, evict(ctx, c, "shop", "p", nil), context.DeadlineExceeded)
		require.Len(t, c.Writes(), 1, "a request of an ended context never leaves the client")
	})
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, maintenancetest.Options{})
		c.Add(maintenancetest.Node("n1"))
		c.Delay(maintenancetest.Reads(), 3*time.Second).Times(1)
		start := time.Now()
		_, err := c.Client().CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, time.Since(start))
		w, err := c.Client().CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		w.Stop()
		require.Equal(t, 3*time.Second, time.Since(start))
	})
}

func TestManyAtOnce(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{Controllers: []maintenancetest.Controller{maintenancetest.BudgetStatus, maintenancetest.UnschedulableTaint}})
	c.Add(maintenancetest.Node("n1"))
	const many = 40
	c.AddBudget("shop", "web", web, 0)
	for i := range many {
		c.Add(maintenancetest.Pod("shop", fmt.Sprint("p", i), "n1", maintenancetest.Labels(web)))
	}
	w, err := c.Client().CoreV1().Pods("shop").Watch(t.Context(), metav1.ListOptions{ResourceVersion: c.ResourceVersion()})
	require.NoError(t, err)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			if err := evict(t.Context(), c, "shop", fmt.Sprint("p", i), nil); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() { c.EditNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = !n.Spec.Unschedulable }) })
		all.Go(func() { c.Requests(); c.Pods(); c.InFlight(nil) })
	}
	all.Wait()
	require.Empty(t, c.Pods())
	last := map[string]string{}
	for range 3 * many {
		e := <-w.ResultChan()
		last[e.Object.(*corev1.Pod).Name] = string(e.Type)
	}
	require.Len(t, last, many)
	for name, kind := range last {
		require.Equal(t, "DELETED", kind, name)
	}
}
