// SPDX-License-Identifier: Apache-2.0

package mirror_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/internal/mirror"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// clients are those that cannot stream a first list, as fakes say of themselves, and those that can.
var clients = map[string]func(*mt.Cluster) any{
	"lists":   func(c *mt.Cluster) any { return c.Client() },
	"streams": func(*mt.Cluster) any { return nil },
}

type mirrored struct {
	*mirror.Mirror[*corev1.Pod]
	changes atomic.Int32
	end     context.CancelFunc

	looks atomic.Bool  // at each change
	old   atomic.Int32 // changes with which it was live and not empty
}

// each runs f for each kind of client, in a bubble.
func each(t *testing.T, f func(t *testing.T, c *mt.Cluster, start func() *mirrored)) {
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := mt.New(mt.Options{}, mt.Node("n1"), mt.Pod("shop", "elsewhere", "n2"))
				var all []*mirrored
				defer synctest.Wait()
				defer c.Close()
				defer func() {
					for _, m := range all {
						m.end()
					}
				}()
				f(t, c, func() *mirrored {
					ctx, end := context.WithCancel(t.Context())
					m := &mirrored{end: end}
					m.Mirror = mirror.Start(ctx, client(c), c.Client().CoreV1().Pods(""), mirror.Scope[*corev1.Pod]{
						Fields: mirror.OnNode("n1"), Changed: m.changed,
						Strip: func(p *corev1.Pod) { p.Spec.Containers = nil },
					})
					all = append(all, m)
					return m
				})
			})
		})
	}
}

func (m *mirrored) changed(was, is *corev1.Pod) {
	m.changes.Add(1)
	if m.looks.Load() && m.Live() && len(m.Items()) > 0 {
		m.old.Add(1)
	}
}

func keys(m *mirrored) []string {
	out := []string{}
	for _, p := range m.Items() {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	slices.Sort(out)
	return out
}

func TestMirrorShowsWhatIsThere(t *testing.T) {
	each(t, func(t *testing.T, c *mt.Cluster, start func() *mirrored) {
		c.Add(mt.Pod("shop", "web-0", "n1", func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "c"}}
			p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		}))
		c.Delay(mt.Reads(), time.Second)
		m := start()
		advance(time.Second / 2)
		require.False(t, m.Live(), "not before it is complete")
		require.True(t, m.Wait(t.Context(), time.Minute))
		synctest.Wait()
		require.Equal(t, []string{"shop/web-0"}, keys(m))
		p, ok := m.Get("shop", "web-0")
		require.True(t, ok)
		require.Empty(t, p.Spec.Containers)
		require.Empty(t, p.ManagedFields)
		_, ok = m.Get("shop", "elsewhere")
		require.False(t, ok)

		for _, act := range []func(){
			func() { c.Add(mt.Pod("shop", "web-1", "n1")) },
			func() { c.EditPod("shop", "web-1", func(p *corev1.Pod) { p.Status.Message = "x" }) },
			func() { c.DeletePod("shop", "web-1") },
		} {
			m.changes.Store(0)
			act()
			synctest.Wait()
			require.Positive(t, m.changes.Load())
		}
		m.changes.Store(0)
		c.Add(mt.Pod("shop", "other", "n2"))
		synctest.Wait()
		require.Zero(t, m.changes.Load())
	})
}

func TestMirrorOfNothing(t *testing.T) {
	each(t, func(t *testing.T, _ *mt.Cluster, start func() *mirrored) {
		m := start()
		require.True(t, m.Wait(t.Context(), time.Second))
		synctest.Wait()
		require.Empty(t, m.Items())
		require.Positive(t, m.changes.Load(), "that there is nothing is told too")
	})
}

func TestMirrorBreaksAndStandsAgain(t *testing.T) {
	each(t, func(t *testing.T, c *mt.Cluster, start func() *mirrored) {
		m := start()
		synctest.Wait()
		for range 3 {
			advance(time.Minute)
			faults := []*mt.Rule{c.Fail(mt.On("watch", "pods"), nil), c.Fail(mt.On("list", "pods"), nil)}
			m.changes.Store(0)
			c.CloseWatches("pods")
			synctest.Wait()
			require.False(t, m.Live(), "from the moment it breaks")
			require.Positive(t, m.changes.Load(), "and that is told")
			require.False(t, m.Wait(t.Context(), time.Second), "a copy that was live once is not waited for again")
			c.ExpireHistory()
			c.Add(mt.Pod("shop", "web-0", "n1"))

			for _, f := range faults {
				f.Remove()
			}
			m.changes.Store(0)
			advance(2 * time.Minute)
			synctest.Wait()
			require.True(t, m.Live())
			require.Positive(t, m.changes.Load())
			require.Equal(t, []string{"shop/web-0"}, keys(m), "what happened meanwhile is in it")
			c.RemovePod("shop", "web-0")
			synctest.Wait()
			require.Empty(t, keys(m))
		}
	})
}

// A watch that goes on where the one before broke brings what happened in between only after it stands.
func TestMirrorIsNotLiveBeforeItHasCaughtUp(t *testing.T) {
	for name, expire := range map[string]func(*mt.Cluster){"goes on": func(*mt.Cluster) {}, "lists anew": (*mt.Cluster).ExpireHistory} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, c *mt.Cluster, start func() *mirrored) {
				c.Add(mt.Pod("shop", "web-0", "n1"))
				m := start()
				synctest.Wait()
				require.True(t, m.Live())
				fault := c.Fail(mt.On("watch", "pods"), nil)
				c.CloseWatches("pods")
				synctest.Wait()
				c.RemovePod("shop", "web-0")
				expire(c)
				m.looks.Store(true)
				fault.Remove()
				advance(time.Minute)
				synctest.Wait()
				require.True(t, m.Live())
				require.Empty(t, keys(m))
				require.Zero(t, m.old.Load(), "it was called live with a pod that had gone long since")
			})
		})
	}
}

func TestMirrorThatCannotBegin(t *testing.T) {
	each(t, func(t *testing.T, c *mt.Cluster, start func() *mirrored) {
		c.Fail(mt.On("list", "pods"), nil)
		c.Fail(mt.On("watch", "pods"), nil)
		m := start()
		began := time.Now()
		require.False(t, m.Wait(t.Context(), 3*time.Second))
		require.Equal(t, 3*time.Second, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.False(t, m.Wait(ctx, time.Hour))
		require.Equal(t, 4*time.Second, time.Since(began))
	})
}

func TestMirrorEnds(t *testing.T) {
	each(t, func(t *testing.T, c *mt.Cluster, start func() *mirrored) {
		m := start()
		synctest.Wait()
		m.end()
		require.False(t, m.Live(), "at once")
		synctest.Wait()
		require.Zero(t, c.Watches("pods"))
	})
}

func advance(d time.Duration) { <-time.After(d) }

// An API server's own copy may be from before what its client knows to have happened; a mirror may not begin with it.
func TestMirrorDoesNotBeginInThePast(t *testing.T) {
	each(t, func(t *testing.T, c *mt.Cluster, start func() *mirrored) {
		c.Add(mt.Pod("shop", "web-0", "n1"))
		c.Lag("pods", 1)
		m := start()
		synctest.Wait()
		require.True(t, m.Live())
		require.Len(t, m.Items(), 1)
	})
}
