// SPDX-License-Identifier: Apache-2.0

package maintenancetest_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// onNode is a list-watch of the pods of one node.
func onNode(c *maintenancetest.Cluster, node string) *cache.ListWatch {
	pods := c.Client().CoreV1().Pods("")
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = "spec.nodeName=" + node
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = "spec.nodeName=" + node
			return pods.Watch(ctx, o)
		},
	}
}

func TestInformer(t *testing.T) {
	for _, tt := range []struct {
		reason string
		lw     func(*maintenancetest.Cluster) cache.ListerWatcher
		lists  bool
	}{
		{
			"a plain list-watch streams its initial events",
			func(c *maintenancetest.Cluster) cache.ListerWatcher { return onNode(c, "n1") }, false,
		},
		{
			"one that declares the client's semantics lists first",
			func(c *maintenancetest.Cluster) cache.ListerWatcher {
				return cache.ToListWatcherWithWatchListSemantics(onNode(c, "n1"), c.Client())
			}, true,
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				c := newCluster(t, maintenancetest.Options{})
				c.Add(maintenancetest.Pod("shop", "web-0", "n1"), maintenancetest.Pod("shop", "web-1", "n2"))
				store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
					ListerWatcher: tt.lw(c), ObjectType: &corev1.Pod{}, Handler: cache.ResourceEventHandlerFuncs{},
				})
				done := make(chan struct{})
				go func() { defer close(done); informer.RunWithContext(ctx) }()
				synctest.Wait()
				require.True(t, informer.HasSynced())
				require.Equal(t, []string{"shop/web-0"}, store.ListKeys())
				require.Equal(t, tt.lists, len(c.Matching(maintenancetest.On("list", "pods"))) > 0)

				c.Add(maintenancetest.Pod("shop", "web-2", "n1"))
				c.EditPod("shop", "web-0", func(p *corev1.Pod) { p.Spec.NodeName = "n2" })
				synctest.Wait()
				require.Equal(t, []string{"shop/web-2"}, store.ListKeys(), "a pod that leaves the node is deleted")

				require.NoError(t, evict(ctx, c, "shop", "web-2", nil))
				synctest.Wait()
				require.Empty(t, store.ListKeys())

				c.CloseWatches("pods")
				synctest.Wait()
				c.ExpireHistory()
				c.Add(maintenancetest.Pod("shop", "web-3", "n1"))
				require.NoError(t, c.Until(ctx, func() bool { return c.Watches("pods") > 0 }), "the reflector comes back")
				synctest.Wait()
				require.Equal(t, []string{"shop/web-3"}, store.ListKeys())
				cancel()
				<-done
				require.Zero(t, c.Watches("*"))
			})
		})
	}
}

// kinds drains what a watch has to say now: one word and name an event.
func kinds(w watch.Interface) []string {
	synctest.Wait()
	var out []string
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				return append(out, "closed")
			}
			name := ""
			if o, ok := e.Object.(metav1.Object); ok {
				name = " " + o.GetName()
			}
			out = append(out, string(e.Type)+name)
			synctest.Wait()
		default:
			return out
		}
	}
}

func TestWatchStartsAtItsVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, maintenancetest.Options{})
		nodes := c.Client().CoreV1().Nodes()
		c.Add(maintenancetest.Node("a"))
		list, err := nodes.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		c.Add(maintenancetest.Node("b"))
		c.EditNode("a", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		c.DeleteNode("b")

		yes, no := true, false
		for _, tt := range []struct {
			reason  string
			options metav1.ListOptions
			want    []string
		}{
			{"from a list: what happened since", metav1.ListOptions{ResourceVersion: list.ResourceVersion}, []string{"ADDED b", "MODIFIED a", "DELETED b"}},
			{"from now: nothing", metav1.ListOptions{ResourceVersion: c.ResourceVersion()}, nil},
			{"without a version: what is there", metav1.ListOptions{}, []string{"ADDED a"}},
			{"from 0: what is there", metav1.ListOptions{ResourceVersion: "0"}, []string{"ADDED a"}},
			{"initial events", metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true}, []string{"ADDED a", "BOOKMARK"}},
			{"no initial events", metav1.ListOptions{SendInitialEvents: &no}, nil},
			{
				"a name, whatever else happens",
				metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name=b"},
				[]string{"ADDED b", "DELETED b"},
			},
			{
				"an object comes into the selection",
				metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "spec.unschedulable=true"},
				[]string{"ADDED a"},
			},
			{
				"and leaves it",
				metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "spec.unschedulable=false"},
				[]string{"ADDED b", "DELETED a", "DELETED b"},
			},
			{"a label that none has", metav1.ListOptions{LabelSelector: "a=b"}, nil},
		} {
			w, err := nodes.Watch(t.Context(), tt.options)
			require.NoError(t, err, tt.reason)
			got := kinds(w)
			for i := range got {
				if got[i] == "BOOKMARK " {
					got[i] = "BOOKMARK"
				}
			}
			require.Equal(t, tt.want, got, tt.reason)
			w.Stop()
		}
		_, err = nodes.Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.podCIDR=x"})
		require.True(t, apierrors.IsBadRequest(err), err)
		_, err = nodes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "x"})
		require.True(t, apierrors.IsBadRequest(err), err)
	})
}

func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, maintenancetest.Options{})
		pods := c.Client().CoreV1().Pods("default")
		old := c.ResourceVersion()
		ctx, cancel := context.WithCancel(t.Context())

		w, err := pods.Watch(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		c.Add(maintenancetest.Pod("default", "unread", "n1"))
		cancel()
		require.Equal(t, []string{"closed"}, kinds(w), "with its context, read or not")

		w, err = pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: old})
		require.NoError(t, err)
		c.CloseWatches("pods")
		require.Equal(t, []string{"ADDED unread", "closed"}, kinds(w), "by the server, after what it has sent")

		c.ExpireHistory()
		w, err = pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: old})
		require.NoError(t, err)
		e := <-w.ResultChan()
		require.Equal(t, watch.Error, e.Type)
		require.True(t, apierrors.IsResourceExpired(apierrors.FromObject(e.Object)))
		require.Equal(t, []string{"closed"}, kinds(w))

		w, err = pods.Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		c.Close()
		require.Equal(t, []string{"closed"}, kinds(w))
		_, err = pods.List(t.Context(), metav1.ListOptions{})
		require.Error(t, err)
	})
}

func TestPausedWatchesShowAnOldState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, maintenancetest.Options{})
		pods := c.Client().CoreV1().Pods("default")
		w, err := pods.Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		defer w.Stop()
		c.PauseWatches("pods")
		c.Add(maintenancetest.Pod("default", "p", "n1"))
		require.Empty(t, kinds(w))
		c.ResumeWatches("pods")
		require.Equal(t, []string{"ADDED p"}, kinds(w))
	})
}

// A copy that lags shows what was, and what happened since only as other things happen.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := maintenancetest.New(maintenancetest.Options{}, maintenancetest.Node("n1"))
		defer c.Close()
		c.EditNode("n1", func(n *corev1.Node) { n.Labels["a"] = "1" })
		c.EditNode("n1", func(n *corev1.Node) { n.Labels["a"] = "2" })
		c.Lag("nodes", 1)
		nodes := c.Client().CoreV1().Nodes()
		label := func(o metav1.ListOptions) string {
			list, err := nodes.List(t.Context(), o)
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			return list.Items[0].Labels["a"]
		}
		require.Equal(t, "1", label(metav1.ListOptions{ResourceVersion: "0"}))
		require.Equal(t, "2", label(metav1.ListOptions{}), "a consistent read")
		require.Equal(t, "2", label(metav1.ListOptions{ResourceVersion: c.ResourceVersion()}), "not older than that")
		yes := true
		_, err := nodes.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes})
		require.True(t, apierrors.IsInvalid(err))

		list, err := nodes.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		require.NoError(t, err)
		w, err := nodes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		require.NoError(t, err)
		defer w.Stop()
		synctest.Wait()
		require.Empty(t, w.ResultChan())
		sees := func() string {
			synctest.Wait()
			select {
			case e := <-w.ResultChan():
				return e.Object.(*corev1.Node).Labels["a"]
			default:
				return ""
			}
		}
		require.Empty(t, sees())
		c.Add(maintenancetest.Node("n2"))
		require.Equal(t, "2", sees(), "the change before the last")
		require.Empty(t, sees())
		c.Lag("nodes", 0)
		synctest.Wait()
		require.Equal(t, "n2", (<-w.ResultChan()).Object.(*corev1.Node).Name)

		c.DeleteNode("n2")
		<-w.ResultChan()
		c.Lag("*", 1)
		list, err = nodes.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		require.NoError(t, err)
		require.Len(t, list.Items, 2, "before the deletion")
	})
}
