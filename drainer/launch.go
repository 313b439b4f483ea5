// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// launch queues a call for each of the postings and returns a channel that is closed when all of them are
// answered, but for those that wait for a budget. The caller holds m.mu.
func (d *Drainer) launch(ctx context.Context, node string, m *memory, due []posting) <-chan struct{} {
	answered := make(chan struct{})
	var open sync.WaitGroup
	if m.life.Err() == nil {
		var queue []call
		for _, p := range due {
			open.Add(1)
			done := sync.OnceFunc(open.Done)
			if p.behind == nil {
				queue = append(queue, d.call(ctx, node, m, p.pod, "", func(kind) { done() }))
				continue
			}
			t := &ticket{node: node, pod: p.pod, rests: done}
			t.call = d.call(ctx, node, m, p.pod, p.behind.UID, func(got kind) {
				d.lanes.landed(p.behind.UID, t, got)
				done()
			})
			d.lanes.add(p.behind, t)
		}
		d.calls.add(node, queue...)
	}
	go func() {
		open.Wait()
		close(answered)
	}()
	return answered
}

// call prepares the call for one pod, to be made when its turn comes. It ends with the watch that stands now, if there
// is one, else with ctx.
func (d *Drainer) call(ctx context.Context, node string, m *memory, pod *corev1.Pod, behind types.UID, answered func(kind)) call {
	a := m.attempts[pod.UID]
	posted := d.opts.Clock.Now()
	if a.asked.IsZero() {
		a.asked = posted
	}
	look := a.answer.kind == unanswered || a.answer.kind == serverFail || a.answer.kind == brokenOff
	tries := collisions
	if a.stale > 0 {
		tries = 1
	}
	asked := a.asked
	a.flying, a.behind = true, behind
	m.flights.Add(1)
	if v := d.view(node); v != nil {
		ctx = v.ctx
	}
	land := func(got answer) {
		m.landed(pod.UID, got, d.opts.Clock.Now())
		m.flights.Done()
		answered(got.kind)
		d.answered(node, got.kind)
	}
	return call{
		dropped: func() { land(answer{}) },
		run: func() {
			callCtx, cancel := callContext(ctx, m)
			defer cancel()
			pod, missed, got := d.recheck(pod, node)
			if callCtx.Err() == nil && m.life.Err() == nil && got.kind == unasked {
				late := d.opts.Clock.Since(posted) > AnswerWait && !d.watched(node)
				got = d.evict(callCtx, pod, asked, tries, look || missed || late)
				if got.kind == unanswered && callCtx.Err() != nil {
					got = answer{kind: brokenOff}
				}
			}
			land(got)
		},
	}
}

// outliving returns a context that ends with ctx, but not any more once released.
func outliving(ctx context.Context) (out context.Context, release func()) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	return out, func() { stop() }
}

// callContext returns the context of a call: it ends with ctx, and with Cancel.
func callContext(ctx context.Context, m *memory) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(m.life, cancel)
	return ctx, func() { stop(); cancel() }
}

func (d *Drainer) watched(node string) bool {
	v := d.view(node)
	return v != nil && v.pods.Live()
}

// recheck looks at the pod in the watch once more, since a call may have queued for a while. Missed says that it is
// not there: it is gone, or came after the copy's list and was read from the API server, which alone can say.
func (d *Drainer) recheck(pod *corev1.Pod, node string) (now *corev1.Pod, missed bool, got answer) {
	v := d.view(node)
	if v == nil || !v.pods.Live() {
		return pod, false, answer{}
	}
	now, ok := v.pods.Get(pod.Namespace, pod.Name)
	switch {
	case !ok || now.UID != pod.UID:
		return pod, true, answer{}
	case now.DeletionTimestamp != nil:
		return pod, false, answer{kind: going}
	default:
		return now, false, answer{}
	}
}
