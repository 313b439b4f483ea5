// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/nodemaint/nodemaint/internal/mirror"
)

// view is the watch of one node.
type view struct {
	ctx  context.Context // the Watch's: it bounds calls that outlive their pass
	pods *mirror.Mirror[*corev1.Pod]
	wake func()
}

// Watch calls wake whenever a pod of node, the answer to a call made for one, or a budget that blocks
// one has changed, until ctx ends; wake must not block. It returns at once. While it lives, Pass reads
// the pods from it, and calls still under way when a pass returns end with ctx.
func (d *Drainer) Watch(ctx context.Context, node string, wake func()) {
	v := &view{ctx: ctx, wake: wake}
	v.pods = mirror.Start(ctx, d.client, d.client.CoreV1().Pods(corev1.NamespaceAll), mirror.Scope[*corev1.Pod]{
		Fields: mirror.OnNode(node), Strip: d.strip(), Changed: wake,
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
	defer d.mu.Unlock()
	if d.views[node] == v {
		delete(d.views, node)
		d.daemonSets.keep(node, nil)
		d.budgets.keep(node, nil)
	}
}

// useBudgets returns the copy of a namespace's budgets, for as long as node is watched; nil if it is not.
func (d *Drainer) useBudgets(node, namespace string) *mirror.Mirror[*policyv1.PodDisruptionBudget] {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.views[node]
	if v == nil {
		return nil
	}
	return d.budgets.use(v.ctx, namespace, node)
}

func (d *Drainer) mirrorDaemonSets(ctx context.Context, namespace string, changed func()) *mirror.Mirror[*appsv1.DaemonSet] {
	return mirror.Start(ctx, d.client, d.client.AppsV1().DaemonSets(namespace), mirror.Scope[*appsv1.DaemonSet]{
		Changed: changed,
		Strip: func(ds *appsv1.DaemonSet) { // that it exists is all the filters ask
			ds.Labels, ds.Annotations, ds.Spec, ds.Status = nil, nil, appsv1.DaemonSetSpec{}, appsv1.DaemonSetStatus{}
		},
	})
}

func (d *Drainer) mirrorBudgets(ctx context.Context, namespace string, changed func()) *mirror.Mirror[*policyv1.PodDisruptionBudget] {
	return mirror.Start(ctx, d.client, d.client.PolicyV1().PodDisruptionBudgets(namespace), mirror.Scope[*policyv1.PodDisruptionBudget]{
		Changed: changed,
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
	p.Status = corev1.PodStatus{Phase: p.Status.Phase}
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
