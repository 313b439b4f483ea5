// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Object is what every kind is that a cluster keeps.
type Object interface {
	runtime.Object
	metav1.Object
}

type object = Object

type key struct{ namespace, name string }

func keyOf(o object) key { return key{o.GetNamespace(), o.GetName()} }

// change is one entry of the history. Its objects are never altered, only copied.
type change struct {
	rv       uint64
	gvr      schema.GroupVersionResource
	kind     watch.EventType
	obj, old object
}

// store keeps the objects and their history, under one increasing version. It knows
// nothing of requests, and its caller holds the cluster's lock.
type store struct {
	rv       uint64
	expired  uint64 // watches from below this version are too old
	objects  map[schema.GroupVersionResource]map[key]object
	history  []change
	watchers map[*watcher]struct{}
	sight    func(schema.GroupVersionResource) uint64 // how far watches of a resource see
}

func newStore() *store {
	return &store{
		rv:       100, // so that nobody mistakes a version for a count, or for 0
		objects:  map[schema.GroupVersionResource]map[key]object{},
		watchers: map[*watcher]struct{}{},
	}
}

func (s *store) version() string { return strconv.FormatUint(s.rv, 10) }

// get returns the stored object itself: copy it before altering it or giving it away.
func (s *store) get(gvr schema.GroupVersionResource, k key) (object, bool) {
	o, ok := s.objects[gvr][k]
	return o, ok
}

// list returns the stored objects of a namespace (empty: of all), sorted as a server does.
func (s *store) list(gvr schema.GroupVersionResource, namespace string) []object {
	var out []object
	for k, o := range s.objects[gvr] {
		if namespace == "" || k.namespace == namespace {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// at returns what list returned when the latest change was that of the given version, as far as the
// history goes back.
func (s *store) at(version uint64, gvr schema.GroupVersionResource, namespace string) []object {
	then := &store{objects: map[schema.GroupVersionResource]map[key]object{gvr: maps.Clone(s.objects[gvr])}}
	for _, ch := range slices.Backward(s.history) {
		if ch.rv <= version {
			break
		}
		switch {
		case ch.gvr != gvr:
		case ch.old == nil:
			delete(then.objects[gvr], keyOf(ch.obj))
		default:
			then.objects[gvr][keyOf(ch.old)] = ch.old
		}
	}
	return then.list(gvr, namespace)
}

// put stores o, which from now on belongs to the store, gives it the next version, and
// tells the watchers. It returns false, and changes nothing, when o says nothing new.
func (s *store) put(gvr schema.GroupVersionResource, o object) bool {
	k := keyOf(o)
	old, exists := s.get(gvr, k)
	kind := watch.Added
	if exists {
		o.SetResourceVersion(old.GetResourceVersion())
		if apiequality.Semantic.DeepEqual(old, o) {
			return false
		}
		kind = watch.Modified
	}
	s.rv++
	o.SetResourceVersion(s.version())
	if s.objects[gvr] == nil {
		s.objects[gvr] = map[key]object{}
	}
	s.objects[gvr][k] = o
	s.publish(change{rv: s.rv, gvr: gvr, kind: kind, obj: o, old: old})
	return true
}

// remove takes an object out and tells the watchers; its last state gets the version of
// its removal.
func (s *store) remove(gvr schema.GroupVersionResource, k key) {
	old, ok := s.get(gvr, k)
	if !ok {
		return
	}
	delete(s.objects[gvr], k)
	s.rv++
	last := copyOf(old)
	last.SetResourceVersion(s.version())
	s.publish(change{rv: s.rv, gvr: gvr, kind: watch.Deleted, obj: last, old: old})
}

func (s *store) publish(ch change) {
	s.history = append(s.history, ch)
	for w := range s.watchers {
		w.see(ch)
		w.reach(s.sight(w.gvr))
	}
}

func copyOf[T object](o T) T { return o.DeepCopyObject().(T) }
