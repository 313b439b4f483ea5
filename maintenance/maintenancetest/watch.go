// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher is one open watch. Changes go into a queue without bound, so that a slow reader
// never holds up a writer, and one goroutine hands them out until the watch ends.
type watcher struct {
	cluster *Cluster
	gvr     schema.GroupVersionResource
	sel     selection
	result  chan watch.Event
	done    chan struct{} // closed by Stop
	forget  func() bool   // lets go of the context; needs the cluster's lock

	mu    sync.Mutex
	queue []queued
	last  bool   // nothing comes after the queue
	held  bool   // by PauseWatches
	sight uint64 // no later change is seen yet
	more  chan struct{}
}

// queued is an event on its way, and the version of the change that it tells of; 0 if it is none.
type queued struct {
	watch.Event
	rv uint64
}

// watch opens a watch: first what the resourceVersion asks for, then what happens.
func (c *Cluster) watch(ctx context.Context, r *Request) (watch.Interface, error) {
	sel, err := newSelection(r.gvr(), r.Namespace, r.Name, r.listOptions)
	if err != nil {
		return nil, err
	}
	w := &watcher{
		cluster: c, gvr: r.gvr(), sel: sel,
		result: make(chan watch.Event), done: make(chan struct{}), more: make(chan struct{}, 1),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := r.listOptions; o.SendInitialEvents != nil && *o.SendInitialEvents && c.lag(w.gvr) > 0 {
		return nil, invalid(r, field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"))
	}
	if err := w.begin(c.store, r); err != nil {
		return nil, err
	}
	c.store.watchers[w] = struct{}{}
	w.held = c.paused[w.gvr.Resource]
	w.reach(c.sight(w.gvr))
	w.forget = context.AfterFunc(ctx, w.Stop)
	go w.run()
	return w, nil
}

// begin queues what stands before the live changes: nothing for a version that is the
// latest, the history for an older one, all objects without a version (or 0), and the
// closing bookmark for a reader that asked for initial events.
func (w *watcher) begin(s *store, r *Request) error {
	o := r.listOptions
	streaming := o.SendInitialEvents != nil && *o.SendInitialEvents
	if o.ResourceVersion == "" || o.ResourceVersion == "0" || streaming {
		if o.SendInitialEvents == nil || streaming {
			for _, obj := range s.list(w.gvr, r.Namespace) {
				if w.sel.matches(obj) {
					w.push(watch.Event{Type: watch.Added, Object: copyOf(obj)}, 0)
				}
			}
		}
		if streaming && o.AllowWatchBookmarks {
			mark, err := newObject(w.cluster.scheme, r.gvr(), r.kind)
			if err != nil {
				return err
			}
			mark.SetResourceVersion(s.version())
			mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
			w.push(watch.Event{Type: watch.Bookmark, Object: mark}, 0)
		}
		return nil
	}
	from, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q", o.ResourceVersion))
	}
	if from < s.expired {
		gone := apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, s.expired))
		w.push(watch.Event{Type: watch.Error, Object: &gone.ErrStatus}, 0)
		w.end()
		return nil
	}
	for _, ch := range s.history {
		if ch.rv > from {
			w.see(ch)
		}
	}
	return nil
}

// see queues a change as this watch's selectors show it: an object that comes into the
// selection is added, and one that leaves it is deleted, in its last selected state.
func (w *watcher) see(ch change) {
	if ch.gvr != w.gvr {
		return
	}
	was := ch.old != nil && w.sel.matches(ch.old)
	is := ch.kind != watch.Deleted && w.sel.matches(ch.obj)
	switch {
	case is && was:
		w.push(watch.Event{Type: watch.Modified, Object: copyOf(ch.obj)}, ch.rv)
	case is:
		w.push(watch.Event{Type: watch.Added, Object: copyOf(ch.obj)}, ch.rv)
	case was:
		last := copyOf(ch.old)
		last.SetResourceVersion(ch.obj.GetResourceVersion())
		w.push(watch.Event{Type: watch.Deleted, Object: last}, ch.rv)
	}
}

func (w *watcher) push(e watch.Event, rv uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last {
		return
	}
	w.queue = append(w.queue, queued{e, rv})
	w.poke()
}

// reach lets the reader have the changes up to that version.
func (w *watcher) reach(rv uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sight = rv
	w.poke()
}

// end lets the reader have what its server knows of and then closes the watch, as a server does.
func (w *watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = true
	w.queue = slices.DeleteFunc(w.queue, func(q queued) bool { return q.rv > w.sight })
	w.poke()
}

func (w *watcher) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = true
}

func (w *watcher) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = false
	w.poke()
}

func (w *watcher) poke() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// next takes the head of the queue. ok is false when it is empty, over when for good.
func (w *watcher) next() (e watch.Event, ok, over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.held:
		return e, false, false
	case len(w.queue) == 0:
		return e, false, w.last
	}
	head := w.queue[0]
	if head.rv > w.sight {
		return e, false, false
	}
	w.queue = w.queue[1:]
	return head.Event, true, false
}

func (w *watcher) run() {
	defer w.Stop()
	defer close(w.result)
	for {
		e, ok, over := w.next()
		switch {
		case over:
			return
		case ok:
			select {
			case w.result <- e:
			case <-w.done:
				return
			}
		default:
			select {
			case <-w.more:
			case <-w.done:
				return
			}
		}
	}
}

// Stop implements watch.Interface.
func (w *watcher) Stop() {
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	w.stop()
}

// stop ends a watch at once, whatever is queued. The caller holds the cluster's lock.
func (w *watcher) stop() {
	if _, open := w.cluster.store.watchers[w]; open {
		delete(w.cluster.store.watchers, w)
		w.forget()
		close(w.done)
	}
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }
