// SPDX-License-Identifier: Apache-2.0

package drainer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodemaint/nodemaint/drainer"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// stage is a cluster with the nodes n1 and n2, and a Drainer of it.
type stage struct {
	*mt.Cluster
	*drainer.Drainer
	t     *testing.T
	wakes chan struct{}
	ends  []context.CancelFunc
}

// onStage runs f in a bubble.
func onStage(t *testing.T, co mt.Options, o drainer.Options, f func(t *testing.T, s *stage), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := mt.New(co, append([]runtime.Object{mt.Node("n1"), mt.Node("n2")}, objects...)...)
		s := &stage{Cluster: c, Drainer: drainer.New(c.Client(), o), t: t, wakes: make(chan struct{}, 1)}
		defer synctest.Wait()
		defer c.Close()
		defer func() {
			for _, end := range s.ends {
				end()
			}
			s.Cancel("n1")
			s.Cancel("n2")
		}()
		f(t, s)
	})
}

// watch watches the node until the end, or until end is called.
func (s *stage) watch(node string) (end context.CancelFunc) {
	ctx, end := context.WithCancel(s.t.Context())
	s.ends = append(s.ends, end)
	s.Watch(ctx, node, func() {
		select {
		case s.wakes <- struct{}{}:
		default:
		}
	})
	synctest.Wait()
	return end
}

// pass makes one pass and lets its consequences play out.
func (s *stage) pass(node string) drainer.Report {
	s.t.Helper()
	r, err := s.Pass(s.t.Context(), node)
	require.NoError(s.t, err)
	synctest.Wait()
	return r
}

// settle makes passes as long as something wakes.
func (s *stage) settle(node string) drainer.Report {
	s.t.Helper()
	for range 50 {
		r := s.pass(node)
		synctest.Wait()
		select {
		case <-s.wakes:
		default:
			return r
		}
	}
	require.Fail(s.t, "it does not come to rest")
	return drainer.Report{}
}

// evictions returns the pods for which an eviction was posted, in order.
func (s *stage) evictions() []string {
	out := []string{}
	for _, r := range s.Matching(mt.On("create", "pods/eviction")) {
		out = append(out, r.Namespace+"/"+r.Name)
	}
	return out
}

// advance lets the bubble's time pass.
func advance(d time.Duration) { <-time.After(d) }

func names(pods []drainer.Pod) []string {
	out := []string{}
	for _, p := range pods {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	return out
}

// where says in which list of the report each pod is.
func where(r drainer.Report) map[string]string {
	out := map[string]string{}
	for list, pods := range map[string][]drainer.Pod{
		"leaving": r.Leaving, "blocked": r.Blocked, "failed": r.Failed, "deferred": r.Deferred, "staying": r.Staying,
	} {
		for _, p := range pods {
			out[p.Namespace+"/"+p.Name] = list
		}
	}
	return out
}

func web(n int) []runtime.Object {
	var out []runtime.Object
	for i := range n {
		out = append(out, mt.Pod("shop", fmt.Sprintf("web-%d", i), "n1", mt.Labels(app), mt.OfReplicaSet("web")))
	}
	return out
}

var (
	app            = map[string]string{"app": "web"}
	evictionOfPods = mt.On("create", "pods/eviction")
)

// eviction returns the n-th eviction that was posted, from 0.
func (s *stage) eviction(n int) (mt.Request, *policyv1.Eviction) {
	r := s.Matching(evictionOfPods)[n]
	return r, r.Object.(*policyv1.Eviction)
}
