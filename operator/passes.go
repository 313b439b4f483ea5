// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// passes are those under way, by the name of their object. The pass of an object that goes is ended: its node is
// given back by the next, and that must not wait until an API server has answered this one.
type passes struct {
	mu   sync.Mutex
	ends map[string]context.CancelCauseFunc
}

// errGoing is why the pass of an object that goes has ended.
var errGoing = errors.New("the object is going")

func newPasses() *passes { return &passes{ends: map[string]context.CancelCauseFunc{}} }

// begin returns the context of a pass, which ends when its object goes, and what ends the pass. It comes before the
// object is read: if what is read does not show that it goes, the news of that is still to come.
func (p *passes) begin(ctx context.Context, name string) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends[name] = end
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.ends, name)
		end(nil)
	}
}

// end ends the pass of the object of that name, if one is under way.
func (p *passes) end(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if end := p.ends[name]; end != nil {
		end(errGoing)
	}
}

// handler ends the pass of an object that goes, or whose name is another's by now. It asks for the next one itself:
// whoever else does may have done so before this one has ended.
func (p *passes) handler() handler.EventHandler {
	end := func(o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		p.end(o.GetName())
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if beginsToGo(e) || e.ObjectNew.GetUID() != e.ObjectOld.GetUID() {
				end(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			end(e.Object, q)
		},
	}
}

// goes says whether the pass with that context was ended because its object goes.
func goes(pass context.Context) bool { return errors.Is(context.Cause(pass), errGoing) }
