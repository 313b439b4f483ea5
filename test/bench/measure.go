// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// gauge watches the pods that are to leave and notes when each node is rid of them: the same measure for
// every contender.
type gauge struct {
	stop func()

	mu      sync.Mutex
	left    map[string]map[types.UID]bool // by node
	empty   map[string]time.Time          // when a node was rid of its pods
	changed chan struct{}
	pods    int
}

// measure begins to watch the pods of those nodes that no DaemonSet owns.
func (s *stage) measure(ctx context.Context, nodes []string) (*gauge, error) {
	var all corev1.PodList
	if err := s.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	g := &gauge{left: map[string]map[types.UID]bool{}, empty: map[string]time.Time{}, changed: make(chan struct{}, 1)}
	for i := range all.Items {
		p := &all.Items[i]
		if slices.Contains(nodes, p.Spec.NodeName) && mustLeave(p) {
			if g.left[p.Spec.NodeName] == nil {
				g.left[p.Spec.NodeName] = map[types.UID]bool{}
			}
			g.left[p.Spec.NodeName][p.UID] = true
			g.pods++
		}
	}
	w, err := s.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: all.ResourceVersion}})
	if err != nil {
		return nil, err
	}
	g.stop = w.Stop
	go g.follow(w)
	return g, nil
}

func mustLeave(p *corev1.Pod) bool {
	o := metav1.GetControllerOf(p)
	return o == nil || o.Kind != "DaemonSet"
}

func (g *gauge) follow(w watch.Interface) {
	for e := range w.ResultChan() {
		p, ok := e.Object.(*corev1.Pod)
		if !ok || e.Type != watch.Deleted {
			continue
		}
		g.mu.Lock()
		if left := g.left[p.Spec.NodeName]; left[p.UID] {
			if delete(left, p.UID); len(left) == 0 {
				g.empty[p.Spec.NodeName] = time.Now()
			}
		}
		g.mu.Unlock()
		select {
		case g.changed <- struct{}{}:
		default:
		}
	}
}

// wait waits until the nodes are rid of their pods.
func (g *gauge) wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		done := len(g.empty) == len(g.left)
		g.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-g.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// times returns how long after began each node was rid of its pods, sorted.
func (g *gauge) times(began time.Time) []time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []time.Duration
	for _, t := range g.empty {
		out = append(out, t.Sub(began))
	}
	slices.Sort(out)
	return out
}
