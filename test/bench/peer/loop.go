// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"
)

// requeue is how long the library loop waits before it comes back to a node that it could not drain. So long the
// library waits too, as it did when that was not yet an option, before it posts a refused eviction again.
const requeue = 5 * time.Second

// runLoop drains the nodes as an operator does that calls kubectl's library from one worker: cordon, then
// drain.RunNodeDrain with a time-out of 30 s; a node that fails goes to the end of the queue and waits 5 s.
// When a node is drained it writes a line: "drained", the node, the time.
func runLoop(ctx context.Context, c kubernetes.Interface, nodes []string) error {
	type entry struct {
		node string
		due  time.Time
	}
	var queue []entry
	for _, n := range nodes {
		queue = append(queue, entry{node: n})
	}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if err := pauseUntil(ctx, next.due); err != nil {
			return err
		}
		if err := drainByLibrary(ctx, c, next.node); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", next.node, err)
			queue = append(queue, entry{next.node, time.Now().Add(requeue)})
			continue
		}
		fmt.Println("drained", next.node, time.Now().Format(time.RFC3339Nano))
	}
	return nil
}

func drainByLibrary(ctx context.Context, c kubernetes.Interface, node string) error {
	helper := &drain.Helper{
		Ctx: ctx, Client: c, Force: true, DeleteEmptyDirData: true, IgnoreAllDaemonSets: true, GracePeriodSeconds: -1,
		Timeout: 30 * time.Second, EvictErrorRetryDelay: requeue, Out: io.Discard, ErrOut: io.Discard,
	}
	n, err := c.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := drain.RunCordonOrUncordon(helper, n, true); err != nil {
		return err
	}
	return drain.RunNodeDrain(helper, node)
}
