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
// object concerned. It is a runnable of the manager: watches live no longer than it.
type watches struct {
	engine maintenance.Interface
	events chan event.TypedGenericEvent[*v1beta1.NodeMaintenance]

	mu      sync.Mutex
	ctx     context.Context // of Start; nil before
	objects map[string]watched
}

// watched is the node that is watched for an object. The object's name may come back with another.
type watched struct {
	node string
	end  context.CancelFunc
}

// errNotStarted is for a pass that came before Start: without a watch nothing would bring the next.
var errNotStarted = errors.New("the watches of nodes have not started yet")

func newWatches(e maintenance.Interface) *watches {
	return &watches{
		engine:  e,
		events:  make(chan event.TypedGenericEvent[*v1beta1.NodeMaintenance]),
		objects: map[string]watched{},
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

// ensure watches node for the object of that name, once.
func (w *watches) ensure(node, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx == nil {
		return errNotStarted
	}
	if was, ok := w.objects[name]; ok && was.node == node {
		return nil
	}
	ctx, cancel := context.WithCancel(w.ctx)
	wakes, err := w.engine.Watch(ctx, node)
	if err != nil {
		cancel()
		return err
	}
	w.objects[name] = watched{node, cancel}
	go w.forward(ctx, name, wakes)
	return nil
}

// node returns the node that is watched for the object of that name, if any.
func (w *watches) node(name string) (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, ok := w.objects[name]
	return was.node, ok
}

// release ends the watch of the object of that name.
func (w *watches) release(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if was, ok := w.objects[name]; ok {
		was.end()
		delete(w.objects, name)
	}
}

func (w *watches) forward(ctx context.Context, name string, wakes <-chan struct{}) {
	nm := &v1beta1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for {
		select {
		case <-wakes:
		case <-ctx.Done():
			return
		}
		select {
		case w.events <- event.TypedGenericEvent[*v1beta1.NodeMaintenance]{Object: nm}:
		case <-ctx.Done():
			return
		}
	}
}
