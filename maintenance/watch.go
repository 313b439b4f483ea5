// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/internal/mirror"
)

// Watch returns a channel that gets a value, at most one ahead, whenever a Start of node is worth while:
// the node, one of its pods, its lease, the answer to an eviction, a budget of its pods or which DaemonSets there are
// has changed.
// It lives until ctx ends; the channel is never closed. While it lives, Start reads from it and makes no
// request that is not owed. A later Watch of the same node takes the place of an earlier one. The error is
// always nil for an Engine: it returns at once, and a watch that breaks is taken up again.
func (e *Engine) Watch(ctx context.Context, node string) (<-chan struct{}, error) {
	wakes := make(chan struct{}, 1)
	wake := func() {
		select {
		case wakes <- struct{}{}:
		default: // one is waiting already
		}
	}
	c := mirror.Start(ctx, e.client, e.client.CoreV1().Nodes(), mirror.Scope[*corev1.Node]{
		Fields: mirror.ByName(node), Strip: stripNode, Changed: wake,
	})
	e.mu.Lock()
	e.copies[node] = c
	e.mu.Unlock()
	e.opts.Lease.Watch(ctx, node, wake)
	e.opts.Drainer.Watch(ctx, node, wake)
	context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.copies[node] == c {
			delete(e.copies, node)
		}
	})
	return wakes, nil
}

func (e *Engine) copyOf(node string) *mirror.Mirror[*corev1.Node] {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.copies[node]
}

// stripNode takes off what no pass reads. It may not take off what a pass writes.
func stripNode(n *corev1.Node) {
	n.Status = corev1.NodeStatus{Conditions: n.Status.Conditions}
}
