// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

// watches keeps a watch of each node under maintenance and turns what it wakes for into events of the
// object concerned. It remembers that object until it is released, also when the watch has ended before. It is a
// runnable of the manager: watches live no longer than it.
type watches struct {
	engine maintenance.Interface
	events chan event.TypedGenericEvent[*v1beta1.NodeMaintenance]

	mu      sync.Mutex
	ctx     context.Context // of Start; nil before
	objects map[string]watched
	rests   map[string]chan struct{} // of objects whose last pass failed; closed when one does not
}

// watched is an object whose node is watched, or is still to be given back. Its name may come back with another.
type watched struct {
	object *v1beta1.NodeMaintenance // what tells who it is
	end    context.CancelFunc
}

// errNotStarted is for a pass that came before Start: without a watch nothing would bring the next.
var errNotStarted = errors.New("the watches of nodes have not started yet")

func newWatches(e maintenance.Interface) *watches {
	return &watches{
		engine:  e,
		events:  make(chan event.TypedGenericEvent[*v1beta1.NodeMaintenance]),
		objects: map[string]watched{},
		rests:   map[string]chan struct{}{},
	}
}

// Start lets watches begin, until ctx ends.
func (w *watches) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	w.mu.Unlock()
	<-ctx.Done()
	return nil
}

// ensure watches the node of nm, once.
func (w *watches) ensure(nm *v1beta1.NodeMaintenance) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx == nil {
		return errNotStarted
	}
	if _, ok := w.objects[nm.Name]; ok {
		return nil
	}
	ctx, cancel := context.WithCancel(w.ctx)
	wakes, err := w.engine.Watch(ctx, nm.Spec.NodeName)
	if err != nil {
		cancel()
		return err
	}
	w.objects[nm.Name] = watched{who(nm), cancel}
	go w.forward(ctx, nm.Name, wakes)
	return nil
}

// note notes who nm is by now, if its node is watched.
func (w *watches) note(nm *v1beta1.NodeMaintenance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if was, ok := w.objects[nm.Name]; ok {
		w.objects[nm.Name] = watched{who(nm), was.end}
	}
}

// end ends the watch of the node of nm, if there is one, and remembers nm: the node is to be given back, which may
// take more than one try, and what changes on it meanwhile must not cut the pause between two of them short.
func (w *watches) end(nm *v1beta1.NodeMaintenance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if was, ok := w.objects[nm.Name]; ok {
		was.end()
	}
	w.objects[nm.Name] = watched{who(nm), func() {}}
}

// of returns the object of that name that is remembered, as far as it tells who it is; nil if there is none.
func (w *watches) of(name string) *v1beta1.NodeMaintenance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.objects[name].object
}

// who returns what tells which object nm is, and which node it is for.
func who(nm *v1beta1.NodeMaintenance) *v1beta1.NodeMaintenance {
	return &v1beta1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: nm.Name, UID: nm.UID, OwnerReferences: nm.OwnerReferences},
		Spec:       v1beta1.NodeMaintenanceSpec{NodeName: nm.Spec.NodeName},
	}
}

// release ends the watch of the object of that name and forgets it.
func (w *watches) release(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if was, ok := w.objects[name]; ok {
		was.end()
		delete(w.objects, name)
	}
	delete(w.rests, name)
}

// rest holds back what the watch of that object wakes for, since its pass failed: the next one comes after a growing
// pause, and that must not be cut short.
func (w *watches) rest(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rests[name] == nil {
		w.rests[name] = make(chan struct{})
	}
}

// resume lets go what was held back.
func (w *watches) resume(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.rests[name]; c != nil {
		close(c)
		delete(w.rests, name)
	}
}

// resting returns what is closed when the object's wakes may go on; nil if they may.
func (w *watches) resting(name string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rests[name]
}

func (w *watches) forward(ctx context.Context, name string, wakes <-chan struct{}) {
	nm := &v1beta1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for {
		select {
		case <-wakes:
		case <-ctx.Done():
			return
		}
		if c := w.resting(name); c != nil {
			select {
			case <-c:
			case <-ctx.Done():
				return
			}
		}
		select {
		case w.events <- event.TypedGenericEvent[*v1beta1.NodeMaintenance]{Object: nm}:
		case <-ctx.Done():
			return
		}
	}
}
