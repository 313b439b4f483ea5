// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// podChanged wakes the watcher of node: within NewsDelay if that a pod has become what it is changes no more than the
// report.
func (d *Drainer) podChanged(node string, v *view, was, is *corev1.Pod) {
	if d.isNews(node, v, was, is) {
		v.news()
	} else {
		v.wake()
	}
}

// isNews says whether there is nothing to do about a pod that was and is like that: it is on its way, or it is gone and
// others are still to leave. That one came, or has changed otherwise, or that the watch turned, may be more.
func (d *Drainer) isNews(node string, v *view, was, is *corev1.Pod) bool {
	switch {
	case was == nil:
		return false
	case is == nil:
		m := d.remembered(node)
		return m != nil && d.view(node) == v && m.someLeave(v.pods.Items())
	default:
		return is.DeletionTimestamp != nil && is.UID == was.UID
	}
}

// answered wakes the watcher of node for the answer to a call: within NewsDelay if the pod goes, which changes no more
// than the report.
func (d *Drainer) answered(node string, got kind) {
	switch v := d.view(node); {
	case v == nil:
	case got == accepted || got == going:
		v.news()
	default:
		v.wake()
	}
}

// someLeave says whether one of the pods had still to leave by the last report, and not after all others.
func (m *memory) someLeave(pods []*corev1.Pod) bool {
	leaving := m.leaving.Load()
	return leaving != nil && slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return (*leaving)[p.UID] })
}
