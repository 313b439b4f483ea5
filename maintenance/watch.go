// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/internal/mirror"
)

// WakeDelay is how long a change that Watch sees waits for others: a pod that goes changes several times, and the
// node's pods seldom change alone.
const WakeDelay = 25 * time.Millisecond

// Watch returns a channel that gets a value, at most one ahead, whenever a Start of node is worth while:
// the node, one of its pods, its lease, the answer to an eviction, which budgets or DaemonSets there are, or the numbers
// of a budget that blocks have changed. It comes WakeDelay after a change, one for all changes within that; for what changes
// no more than the report, as drainer.Drainer.Watch says, up to drainer.NewsDelay later.
// It lives until ctx ends; the channel is never closed. While it lives, Start reads from it and makes no
// request that is not owed. A later Watch of the same node takes the place of an earlier one. The error is
// always nil for an Engine: it returns at once, and a watch that breaks is taken up again.
func (e *Engine) Watch(ctx context.Context, node string) (<-chan struct{}, error) {
	wakes := make(chan struct{}, 1)
	changed := mirror.Gather(WakeDelay, func() {
		select {
		case wakes <- struct{}{}:
		default: // one is waiting already
		}
	})
	c := mirror.Start(ctx, e.client, e.client.CoreV1().Nodes(), mirror.Scope[*corev1.Node]{
		Fields: mirror.ByName(node), Strip: stripNode, Changed: func(_, _ *corev1.Node) { changed() },
	})
	e.mu.Lock()
	e.copies[node] = c
	e.mu.Unlock()
	e.opts.Lease.Watch(ctx, node, changed)
	e.opts.Drainer.Watch(ctx, node, changed)
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

// stripNode takes off what no pass reads. It may not take off what a pass writes. Of the status, which changes with each
// heartbeat, only since when the node is ready, or not, is read.
func stripNode(n *corev1.Node) {
	var ready []corev1.NodeCondition
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			ready = append(ready, corev1.NodeCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	n.Status = corev1.NodeStatus{Conditions: ready}
}
