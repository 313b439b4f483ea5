// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Drainer drains nodes. It is safe for concurrent use; for one node, passes one after the other are
// what it is made for.
type Drainer struct {
	client kubernetes.Interface
	opts   Options
	calls  *calls
	lanes  *lanes

	// Copies that nodes share while they are watched.
	budgets    *pool[*policyv1.PodDisruptionBudget] // by namespace, while pods of it must leave
	daemonSets *pool[*appsv1.DaemonSet]             // one, of all namespaces

	mu       sync.Mutex
	memories map[string]*memory // by node
	views    map[string]*view   // by node, while watched

}

// New returns a Drainer. It does no I/O; options that make no sense are told by Options.Validate and
// here replaced by the defaults.
func New(c kubernetes.Interface, o Options) *Drainer {
	o = o.withDefaults()
	d := &Drainer{
		client: c, opts: o, calls: newCalls(o.MaxInFlight),
		memories: map[string]*memory{}, views: map[string]*view{},
	}
	d.budgets = newPool(d.mirrorBudgets, d.budgetsChanged)
	d.lanes = newLanes(d.calls, o.Clock, d.latest)
	d.daemonSets = newPool(d.mirrorDaemonSets, d.daemonSetsChanged)
	return d
}

// Cancel ends the eviction calls under way for node, returns when they have ended, and forgets what
// was remembered of its drain. Nothing is evicted there until the next Pass.
func (d *Drainer) Cancel(node string) {
	d.mu.Lock()
	m := d.memories[node]
	delete(d.memories, node)
	d.mu.Unlock()
	if m == nil {
		return
	}
	m.end()
	d.lanes.withdraw(node, func(types.UID, types.UID) bool { return true })
	d.calls.drop(node)
	m.flights.Wait()
}

// memory returns what is remembered of node.
func (d *Drainer) memory(node string) *memory {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.memories[node]
	if m == nil {
		m = newMemory()
		d.memories[node] = m
	}
	return m
}

// remembered returns what is remembered of node; nil if nothing is.
func (d *Drainer) remembered(node string) *memory {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.memories[node]
}

// view returns the watch of node; nil without one.
func (d *Drainer) view(node string) *view {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.views[node]
}

// wake tells the watcher of node that something changed.
func (d *Drainer) wake(node string) {
	if v := d.view(node); v != nil {
		v.wake()
	}
}

func (d *Drainer) wakeAll(nodes []string) {
	for _, node := range nodes {
		d.wake(node)
	}
}
