// SPDX-License-Identifier: Apache-2.0

// Package mirror keeps a live copy of the few objects that one list and watch shows, and knows
// whether that copy can be believed at this moment.
//
// It is client-go's informer with two things added: [Mirror.Live], false from the moment the watch
// breaks until a new one stands, so that a caller can read from the API server meanwhile; and a first list
// that is not older than the moment it was asked for, as informers' may be.
package mirror

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Resource lists and watches one resource; every typed client of client-go is one.
type Resource[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// Scope says which objects of a resource a mirror shows and what it keeps of them.
type Scope[T runtime.Object] struct {
	// Fields is a field selector; empty selects everything.
	Fields string
	// Strip takes off what nobody reads, to save memory; nil keeps all.
	Strip func(T)
	// Changed is called after the copy has taken up that an object was added (was is nil), changed in what Strip leaves, or
	// removed (is is nil), and with neither whenever the watch breaks or stands again. It must not block.
	Changed func(was, is T)
}

// catchUp is how long a watch that goes on after another is not believed yet: what happened in between comes
// through it, or as a new list, only after it stands.
const catchUp = time.Second

// Mirror is a live copy of some objects. It is safe for concurrent use.
type Mirror[T runtime.Object] struct {
	store   cache.Store
	synced  cache.DoneChecker
	open    atomic.Pointer[proxied] // the watch that stands, nil if none
	tried   atomic.Bool             // there was a watch, or one could not begin where a list ended
	ended   <-chan struct{}         // closed when the copy is kept no longer
	changed func(was, is T)

	whole sync.Once
	ready chan struct{} // closed once the copy was live for the first time
}

// proxied is one watch on its way through a mirror.
type proxied struct{ *watch.ProxyWatcher }

// Start begins to mirror the resource and returns at once; the copy ends with ctx. The client is
// the one that resource came from: it tells whether it can stream a first list.
func Start[T, L runtime.Object](ctx context.Context, client any, resource Resource[L], scope Scope[T]) *Mirror[T] {
	m := &Mirror[T]{changed: scope.Changed, ended: ctx.Done(), ready: make(chan struct{})}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = scope.Fields
			if o.ResourceVersion == "0" { // whatever the server's own copy has: it may be older than what we know
				o.ResourceVersion, o.Limit = "", 0 // in one piece, as that copy, once it has caught up, can give it
			}
			list, err := resource.List(ctx, o)
			return list, quiet(ctx, err)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = scope.Fields
			streamsList := o.SendInitialEvents != nil && *o.SendInitialEvents
			w, err := resource.Watch(ctx, o)
			if err != nil {
				if !streamsList { // its list grows old
					m.tried.Store(true)
				}
				return nil, quiet(ctx, err)
			}
			return m.track(w, streamsList), nil
		},
	}
	logger := klog.FromContext(ctx)
	var none T
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		Logger:        &logger,
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(lw, client),
		ObjectType:    none,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(is any) { m.changed(none, as[T](is)) },
			UpdateFunc: func(was, is any) {
				if !alike(was, is) {
					m.changed(as[T](was), as[T](is))
				}
			},
			DeleteFunc: func(was any) { m.changed(as[T](was), none) },
		},
		Transform: func(obj any) (any, error) {
			if o, ok := obj.(T); ok && scope.Strip != nil {
				scope.Strip(o)
			}
			if o, err := meta.Accessor(obj); err == nil {
				o.SetManagedFields(nil)
			}
			return obj, nil
		},
	})
	m.store, m.synced = store, informer.HasSyncedChecker()
	go informer.RunWithContext(ctx)
	go func() {
		select {
		case <-m.synced.Done():
			m.turned() // an empty list brings no event
		case <-ctx.Done():
		}
	}()
	return m
}

// as returns the object that a handler was given, as it was known last if it went unseen.
func as[T runtime.Object](obj any) T {
	if unseen, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unseen.Obj
	}
	o, _ := obj.(T)
	return o
}

// alike says whether two states of an object differ in nothing but their version: what changed was stripped.
func alike(was, is any) bool {
	v := reflect.ValueOf(was)
	if v.Kind() != reflect.Pointer || v.Type() != reflect.TypeOf(is) {
		return false
	}
	c := reflect.New(v.Type().Elem()) // a flat copy, since only a string on top is changed
	c.Elem().Set(v.Elem())
	now, err := meta.Accessor(is)
	old, errOld := meta.Accessor(c.Interface())
	if err != nil || errOld != nil {
		return false
	}
	old.SetResourceVersion(now.GetResourceVersion())
	return equality.Semantic.DeepEqual(c.Interface(), is)
}

// quiet keeps the informer from logging that a request ended because the mirror did: of all errors, it
// only passes over one that asks for a new list.
func quiet(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return apierrors.NewResourceExpired(err.Error())
	}
	return err
}

// Live says whether the copy is complete and its watch stands.
func (m *Mirror[T]) Live() bool {
	select {
	case <-m.ended: // the watch goes down a moment later
		return false
	default:
		return m.open.Load() != nil && cache.IsDone(m.synced)
	}
}

// Wait waits until the copy is live for the first time, at most until ctx ends or limit is over, and returns Live.
func (m *Mirror[T]) Wait(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-m.ready:
	case <-ctx.Done():
	}
	return m.Live()
}

// Items returns the objects. They are shared: copy before changing one.
func (m *Mirror[T]) Items() []T {
	objs := m.store.List()
	items := make([]T, 0, len(objs))
	for _, o := range objs {
		items = append(items, o.(T))
	}
	return items
}

// Get returns the object of that namespace (empty for none) and name.
func (m *Mirror[T]) Get(namespace, name string) (T, bool) {
	obj, ok, _ := m.store.GetByKey(cache.NewObjectName(namespace, name).String())
	if !ok {
		var zero T
		return zero, false
	}
	return obj.(T), true
}

// track passes the events of w on and notes when it stands and when it ends. A watch that streams
// its first list stands only once that list is complete, and one that is not the first a moment later.
func (m *Mirror[T]) track(w watch.Interface, streamsList bool) watch.Interface {
	out := make(chan watch.Event)
	p := &proxied{watch.NewProxyWatcher(out)}
	var caught <-chan time.Time
	stands := func() { m.opened(p) }
	if m.tried.Swap(true) {
		stands = func() { caught = time.After(catchUp) }
	}
	if !streamsList {
		stands()
	}
	go func() {
		// In this order: the reflector must see the end only after the copy is known to be old.
		defer close(out)
		defer m.closed(p)
		defer w.Stop()
		for {
			select {
			case <-p.StopChan():
				return
			case <-caught:
				m.opened(p)
			case e, ok := <-w.ResultChan():
				if !ok {
					return
				}
				select {
				case out <- e:
				case <-p.StopChan():
					return
				}
				if streamsList && endsFirstList(e) {
					stands()
				}
			}
		}
	}()
	return p
}

func (m *Mirror[T]) opened(p *proxied) {
	m.open.Store(p)
	m.turned()
}

// turned tells that the copy may have become live, or is no more.
func (m *Mirror[T]) turned() {
	if m.Live() {
		m.whole.Do(func() { close(m.ready) })
	}
	var none T
	m.changed(none, none)
}

// closed forgets p, unless a later watch stands already.
func (m *Mirror[T]) closed(p *proxied) {
	if m.open.CompareAndSwap(p, nil) {
		m.turned()
	}
}

func endsFirstList(e watch.Event) bool {
	if e.Type != watch.Bookmark {
		return false
	}
	o, err := meta.Accessor(e.Object)
	return err == nil && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

// ByName selects the one object of that name.
func ByName(name string) string { return metav1.ObjectNameField + "=" + name }

// OnNode selects the pods bound to that node.
func OnNode(node string) string { return "spec.nodeName=" + node }
