// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodemaint/nodemaint/internal/mirror"
)

// view is the watch of one node.
type view struct {
	ctx  context.Context // the Watch's: it bounds calls that outlive their pass
	pods *mirror.Mirror[*corev1.Pod]
	wake func()
	news func() // wakes within NewsDelay
}

// Watch calls wake whenever a pod of node, the answer to a call made for one, the budgets there are for them, or the
// DaemonSets there are have changed, until ctx ends; what changes no more than the report, within NewsDelay: the numbers
// of budgets while one blocks, and that a pod is on its way or gone while others are to leave. wake must not block. It returns at once. While it lives, Pass reads
// the pods from it, and calls still under way when a pass returns end with ctx. An empty node is not watched.
func (d *Drainer) Watch(ctx context.Context, node string, wake func()) {
	if node == "" {
		return
	}
	v := &view{ctx: ctx, wake: wake, news: mirror.Gather(NewsDelay, wake)}
	v.pods = mirror.Start(ctx, d.client, d.client.CoreV1().Pods(corev1.NamespaceAll), mirror.Scope[*corev1.Pod]{
		Fields: mirror.OnNode(node), Strip: d.strip(), Changed: func(was, is *corev1.Pod) { d.podChanged(node, v, was, is) },
	})
	d.mu.Lock()
	d.views[node] = v
	d.daemonSets.use(ctx, corev1.NamespaceAll, node)
	d.mu.Unlock()
	context.AfterFunc(ctx, func() { d.unwatch(node, v) })
}

// unwatch forgets the watch, unless a later one took its place. What the watch used it leaves in the same
// step, so that neither a later one loses its copies nor one is kept for nobody.
func (d *Drainer) unwatch(node string, v *view) {
	d.mu.Lock()
	current := d.views[node] == v
	if current {
		delete(d.views, node)
		d.daemonSets.keep(node, nil)
		d.budgets.keep(node, nil)
	}
	d.mu.Unlock()
	if current {
		d.lanes.withdraw(node, func(types.UID, types.UID) bool { return true })
		d.calls.drop(node)
	}
}

// copiesOfBudgets returns a copy of the budgets of each of the namespaces, for as long as node is watched and
// needs it; none if it is not watched.
func (d *Drainer) copiesOfBudgets(node string, namespaces map[string]bool) map[string]*mirror.Mirror[*policyv1.PodDisruptionBudget] {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.views[node]
	if v == nil {
		return nil
	}
	d.budgets.keep(node, namespaces)
	out := make(map[string]*mirror.Mirror[*policyv1.PodDisruptionBudget], len(namespaces))
	for ns := range namespaces { // all of them first: they begin beside each other
		out[ns] = d.budgets.use(v.ctx, ns, node)
	}
	return out
}

// budgetsChanged lets go whom a budget of the namespace allows to, and wakes nodes that use its copy: all of them
// at once if other budgets are there, since that changes who waits for which, else those whose report tells
// of the numbers, in time for the next.
func (d *Drainer) budgetsChanged(namespace string, nodes []string) {
	c := d.budgets.get(namespace)
	if c == nil {
		d.wakeAll(nodes)
		return
	}
	d.lanes.see(namespace, c.Get)
	budgets := c.Items()
	slices.SortFunc(budgets, func(a, b *policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
	if d.budgets.others(namespace, setOf(budgets)) {
		d.wakeAll(nodes)
		return
	}
	for _, node := range nodes {
		if v, m := d.view(node), d.remembered(node); v != nil && m != nil && m.blocked.Load() {
			v.news()
		}
	}
}

// latest returns the budget as the copy has it, if there is one.
func (d *Drainer) latest(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	if c := d.budgets.get(b.Namespace); c != nil {
		if now, ok := c.Get(b.Namespace, b.Name); ok && now.UID == b.UID {
			return now
		}
	}
	return b
}

// daemonSetsChanged wakes the nodes if other DaemonSets are there than before: whose pods stay. Their status, which
// changes with every pod of theirs anywhere in the cluster, concerns nobody; nor does it that their watch ended,
// as each does every few minutes.
func (d *Drainer) daemonSetsChanged(key string, nodes []string) {
	c := d.daemonSets.get(key)
	if c == nil {
		return
	}
	var uids []string
	for _, ds := range c.Items() {
		uids = append(uids, string(ds.UID))
	}
	slices.Sort(uids)
	if d.daemonSets.others(key, strings.Join(uids, ",")) {
		d.wakeAll(nodes)
	}
}

func (d *Drainer) mirrorDaemonSets(ctx context.Context, namespace string, changed func()) *mirror.Mirror[*appsv1.DaemonSet] {
	return mirror.Start(ctx, d.client, d.client.AppsV1().DaemonSets(namespace), mirror.Scope[*appsv1.DaemonSet]{
		Changed: func(_, _ *appsv1.DaemonSet) { changed() },
		Strip: func(ds *appsv1.DaemonSet) { // that it exists is all the filters ask
			ds.Labels, ds.Annotations, ds.Spec, ds.Status = nil, nil, appsv1.DaemonSetSpec{}, appsv1.DaemonSetStatus{}
		},
	})
}

func (d *Drainer) mirrorBudgets(ctx context.Context, namespace string, changed func()) *mirror.Mirror[*policyv1.PodDisruptionBudget] {
	return mirror.Start(ctx, d.client, d.client.PolicyV1().PodDisruptionBudgets(namespace), mirror.Scope[*policyv1.PodDisruptionBudget]{
		Changed: func(_, _ *policyv1.PodDisruptionBudget) { changed() },
	})
}

// strip returns what takes off a pod all that is not read; nothing if filters we do not know read it.
func (d *Drainer) strip() func(*corev1.Pod) {
	if len(d.opts.Filters) > 0 {
		return nil
	}
	return stripPod
}

// stripPod keeps what kubectl's filters, budgets and reports read of a pod.
func stripPod(p *corev1.Pod) {
	mirrored, ok := p.Annotations[corev1.MirrorPodAnnotationKey]
	if p.Annotations = nil; ok {
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: mirrored}
	}
	p.Spec = corev1.PodSpec{
		NodeName: p.Spec.NodeName, Volumes: firstEmptyDir(p.Spec.Volumes),
		TerminationGracePeriodSeconds: p.Spec.TerminationGracePeriodSeconds,
	}
	p.Status = corev1.PodStatus{Phase: p.Status.Phase, Conditions: readiness(p.Status.Conditions)}
}

// firstEmptyDir returns the first emptyDir volume: one is all the filters look for.
func firstEmptyDir(volumes []corev1.Volume) []corev1.Volume {
	for _, v := range volumes {
		if v.EmptyDir != nil {
			return []corev1.Volume{v}
		}
	}
	return nil
}

// readiness returns the condition that makes a pod healthy to its budget.
func readiness(conditions []corev1.PodCondition) []corev1.PodCondition {
	for _, c := range conditions {
		if c.Type == corev1.PodReady {
			return []corev1.PodCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return nil
}
