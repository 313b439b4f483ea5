// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// gauge notes when each node is rid of the pods that must leave it: the same measure for every contender.
type gauge struct {
	*arrivals
	stop func()
	pods int
	gone atomic.Int64
}

// measure begins to watch the pods of those nodes that no DaemonSet owns.
func (s *stage) measure(ctx context.Context, nodes []string) (*gauge, error) {
	var all corev1.PodList
	if err := s.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	left := map[string]map[types.UID]bool{}
	g := &gauge{}
	for i := range all.Items {
		p := &all.Items[i]
		if slices.Contains(nodes, p.Spec.NodeName) && mustLeave(p) {
			if left[p.Spec.NodeName] == nil {
				left[p.Spec.NodeName] = map[types.UID]bool{}
			}
			left[p.Spec.NodeName][p.UID] = true
			g.pods++
		}
	}
	if len(left) != len(nodes) {
		return nil, fmt.Errorf("only %d of %d nodes have pods", len(left), len(nodes))
	}
	g.arrivals = newArrivals(len(nodes), s.counting("nodes"))
	var err error
	g.stop, err = s.follow(ctx, &corev1.PodList{}, all.ResourceVersion, g.arrivals, func(e watch.Event) {
		p, ok := e.Object.(*corev1.Pod)
		if !ok || e.Type != watch.Deleted || !left[p.Spec.NodeName][p.UID] {
			return
		}
		g.gone.Add(1)
		if delete(left[p.Spec.NodeName], p.UID); len(left[p.Spec.NodeName]) == 0 {
			g.mark(p.Spec.NodeName)
		}
	})
	return g, err
}

// left returns how many pods are still there.
func (g *gauge) left() int { return g.pods - int(g.gone.Load()) }

func mustLeave(p *corev1.Pod) bool {
	o := metav1.GetControllerOf(p)
	return o == nil || o.Kind != "DaemonSet"
}

// successes notes when `Succeeded` is stored for each node.
func (s *stage) successes(ctx context.Context, nodes []string) (*arrivals, func(), error) {
	var all v1beta1.NodeMaintenanceList
	if err := s.List(ctx, &all); err != nil {
		return nil, nil, err
	}
	a := newArrivals(len(nodes), func(int, int) {})
	stop, err := s.follow(ctx, &v1beta1.NodeMaintenanceList{}, all.ResourceVersion, a, func(e watch.Event) {
		nm, ok := e.Object.(*v1beta1.NodeMaintenance)
		if ok && nm.Status.Phase == v1beta1.MaintenanceSucceeded && slices.Contains(nodes, nm.Spec.NodeName) {
			a.mark(nm.Spec.NodeName)
		}
	})
	return a, stop, err
}

// follow watches a list from a version on, across broken connections. A watch that cannot go on is told to a.
func (s *stage) follow(ctx context.Context, list client.ObjectList, from string, a *arrivals, see func(watch.Event)) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	w, err := watchtools.NewRetryWatcherWithContext(ctx, from, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return s.Watch(ctx, list, &client.ListOptions{Raw: &o})
		},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	go func() {
		for e := range w.ResultChan() {
			see(e)
		}
		a.lose(errWatchEnded)
	}()
	return cancel, nil
}
