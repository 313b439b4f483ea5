// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodemaint/nodemaint/internal/mirror"
)

// Pass posts the evictions that are due for the pods of node and reports where each of its pods
// stands. It waits for the answers to its calls, at most AnswerWait, or WatchedWait while node is watched, and
// never for a pod to go; of a watched node the first pass in a namespace waits for its budgets too, at most
// AnswerWait. Pods behind one budget go two at a time, over all nodes that are watched. Calls not
// answered by then go on, each for at most Options.Timeout, until Cancel or the end of a Watch. Errors: node is
// empty, the pods could not be listed, or ctx ended, and the calls with it unless node is watched. It does not look at the node itself: one that
// does not exist has no pods, and nothing to drain.
func (d *Drainer) Pass(ctx context.Context, node string) (Report, error) {
	m := d.memory(node)
	pods, err := d.judged(ctx, node, m)
	if err != nil {
		return Report{}, err
	}
	if ctx.Err() != nil { // a copy is read even so
		return Report{}, fmt.Errorf("draining node %q: %w", node, context.Cause(ctx))
	}
	d.useBudgets(ctx, node, m, pods)
	budgets := d.lanesFor(node, pods)
	now := d.opts.Clock.Now()
	m.mu.Lock()
	m.observe(pods, d.opts.Last, now)
	due := m.due(pods, budgets, now)
	callCtx, release := outliving(ctx)
	defer release()
	answered := d.launch(callCtx, node, m, due)
	m.mu.Unlock()
	retry := d.lanes.retry(node)

	select {
	case <-answered:
	case <-time.After(d.answerWait(node)):
	case <-ctx.Done():
		return Report{}, fmt.Errorf("draining node %q: %w", node, context.Cause(ctx))
	}
	d.explain(ctx, node, m, pods)
	report := m.report(pods, d.lanes.blocked, d.opts.Clock.Now())
	report.RetryAfter = soonest(report.RetryAfter, retry)
	if !report.Done() && !d.watched(node) { // nothing will wake the caller
		report.RetryAfter = min(cmp.Or(report.RetryAfter, RetryDelay), RetryDelay)
	}
	return report, nil
}

// lanesFor returns the budgets that the pods of node may wait behind, as far as they are known, and takes out
// of their lanes the pods that are gone, that another budget selects by now, or that theirs lets go anyhow. With means that are stronger
// than budgets nobody waits for one.
func (d *Drainer) lanesFor(node string, pods []judged) known {
	if d.opts.DisableEviction || d.opts.DeleteAfter > 0 {
		return known{}
	}
	budgets := d.knownBudgets(node, pods)
	here := make(map[types.UID]*corev1.Pod, len(pods))
	for _, j := range pods {
		here[j.pod.UID] = j.pod
	}
	d.lanes.withdraw(node, func(uid, budget types.UID) bool {
		pod := here[uid]
		if pod == nil || pod.DeletionTimestamp != nil {
			return true
		}
		selecting, ok := budgets.of(pod)
		behind := waitsBehind(pod, selecting)
		return ok && (behind == nil || behind.UID != budget)
	})
	return budgets
}

// answerWait is how long a pass waits for answers: not long where a later one wakes the caller.
func (d *Drainer) answerWait(node string) time.Duration {
	if d.watched(node) {
		return WatchedWait
	}
	return AnswerWait
}

// soonest returns the shorter of two durations of which 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Plan reports what a first Pass would find and do, and touches nothing: pods it would evict are
// Deferred. Errors: node is empty, or the pods could not be listed.
func (d *Drainer) Plan(ctx context.Context, node string) (Report, error) {
	m, now := newMemory(), d.opts.Clock.Now()
	pods, err := d.judged(ctx, node, m)
	if err != nil {
		return Report{}, err
	}
	m.observe(pods, d.opts.Last, now)
	report := m.report(pods, d.lanes.blocked, now)
	report.RetryAfter = 0 // nothing was begun
	return report, nil
}

// judged returns the pods of node with what kubectl's filters say of them: from the watch while it
// stands, else listed.
func (d *Drainer) judged(ctx context.Context, node string, m *memory) ([]judged, error) {
	pods, err := d.pods(ctx, node)
	if err != nil {
		return nil, fmt.Errorf("listing pods of node %q: %w", node, err)
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	m.judging.Lock()
	defer m.judging.Unlock()
	return judge(ctx, pods, m.verdicts, d.daemonSet, d.opts), nil
}

// errNoName says that a node has no name.
var errNoName = errors.New("node name is empty")

func (d *Drainer) pods(ctx context.Context, node string) ([]*corev1.Pod, error) {
	if node == "" { // would select the pods that are not scheduled yet
		return nil, errNoName
	}
	if v := d.view(node); v != nil && v.pods.Live() {
		return v.pods.Items(), nil
	}
	list, err := d.client.CoreV1().Pods(corev1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: mirror.OnNode(node)})
	if err != nil {
		return nil, err
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods, nil
}

// daemonSet reads from the shared copy what it has; that a DaemonSet is gone, it asks the API server.
func (d *Drainer) daemonSet(ctx context.Context, namespace, name string) (*appsv1.DaemonSet, error) {
	if c := d.daemonSets.get(corev1.NamespaceAll); c != nil {
		if ds, ok := c.Get(namespace, name); ok {
			return ds, nil
		}
	}
	return d.client.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
}
