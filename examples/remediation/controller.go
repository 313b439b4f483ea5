// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/nodemaint/nodemaint/maintenance"
)

const (
	// trigger is the annotation on a Node that asks for its repair.
	trigger = "example.com/repair"
	// ready is the annotation that says the node is drained and may be repaired now.
	ready = "example.com/repair-may-begin"
	// holder is who we are in the leases: another than the Node Maintenance Operator, so that neither works
	// on a node that the other one has.
	holder = "example-remediation"
)

// Repairer takes nodes that ask for it out of service, and gives them back when they stop asking.
type Repairer struct {
	client.Client
	Maintenance maintenance.Interface

	mu     sync.Mutex
	states map[string]maintenance.State
	failed map[string]bool               // whether the last pass of a node did
	stops  map[string]context.CancelFunc // of the watches, by node
	wakes  chan event.TypedGenericEvent[*corev1.Node]
	ctx    context.Context // of the watches: the manager's
}

// SetupWithManager adds the controller to the manager.
func (r *Repairer) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.states, r.failed, r.stops = map[string]maintenance.State{}, map[string]bool{}, map[string]context.CancelFunc{}
	r.wakes, r.ctx = make(chan event.TypedGenericEvent[*corev1.Node], 1024), ctx
	return ctrl.NewControllerManagedBy(mgr).
		For(&corev1.Node{}, builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
		WatchesRawSource(source.TypedChannel[*corev1.Node, reconcile.Request](r.wakes, &handler.TypedEnqueueRequestForObject[*corev1.Node]{})).
		Complete(r)
}

// Reconcile makes one pass for one node.
func (r *Repairer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	n := &corev1.Node{}
	if err := r.Get(ctx, req.NamespacedName, n); err != nil {
		r.forget(req.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if _, wanted := n.Annotations[trigger]; wanted {
		return r.start(ctx, n)
	}
	return ctrl.Result{}, r.stop(ctx, n)
}

func (r *Repairer) start(ctx context.Context, n *corev1.Node) (ctrl.Result, error) {
	if err := r.watch(n.Name); err != nil {
		return ctrl.Result{}, err
	}
	state, err := r.Maintenance.Start(ctx, n.Name, r.state(n.Name))
	if state.Gone { // the node that was maintained went, and n has its name
		r.forget(n.Name)
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	}
	r.keep(n.Name, state, err != nil)
	logf.FromContext(ctx).Info("repair", "phase", state.Phase, "percent", state.Progress.Percent(), "error", state.Error)
	mayBegin := "" // also when it was so before: pods came late, the lease was lost, or passes fail
	if state.Phase == maintenance.Succeeded {
		mayBegin = "true"
	}
	return ctrl.Result{RequeueAfter: state.RetryAfter}, errors.Join(err, r.annotate(ctx, n, mayBegin))
}

// stop gives the node back. What there is to give back stands in the record on the node, so this is right
// also for a node that an earlier process of ours took.
func (r *Repairer) stop(ctx context.Context, n *corev1.Node) error {
	if _, ours := n.Annotations[maintenance.RecordAnnotation]; ours || r.knows(n.Name) {
		if _, err := r.Maintenance.Stop(ctx, n.Name); err != nil {
			r.keep(n.Name, r.state(n.Name), true)
			return err // the node may be given back already, and its lease not yet
		}
	}
	r.forget(n.Name)
	return r.annotate(ctx, n, "")
}

// annotate sets the annotation ready, or takes it off if value is empty.
func (r *Repairer) annotate(ctx context.Context, n *corev1.Node, value string) error {
	if n.Annotations[ready] == value {
		return nil
	}
	before := n.DeepCopy()
	if value == "" {
		delete(n.Annotations, ready)
	} else {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, ready, value)
	}
	return client.IgnoreNotFound(r.Patch(ctx, n, client.MergeFrom(before)))
}

// watch wakes Reconcile when the node, one of its pods, its lease or a budget in the way changes. After a pass that failed
// it does not: the pause before the next try grows, and changes must not cut it short.
func (r *Repairer) watch(node string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stops[node] != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(r.ctx)
	woken, err := r.Maintenance.Watch(ctx, node)
	if err != nil {
		cancel()
		return err
	}
	r.stops[node] = cancel
	go func() {
		e := event.TypedGenericEvent[*corev1.Node]{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}}
		for {
			select {
			case <-woken:
			case <-ctx.Done():
				return
			}
			if r.rests(node) {
				continue
			}
			select {
			case r.wakes <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

func (r *Repairer) state(node string) maintenance.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.states[node]
}

func (r *Repairer) keep(node string, s maintenance.State, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states[node], r.failed[node] = s, failed
}

// rests says whether the last pass of the node failed, so that another one is due by itself.
func (r *Repairer) rests(node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed[node]
}

// knows says whether this process has started maintenance of the node and not ended it.
func (r *Repairer) knows(node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stops[node] != nil
}

func (r *Repairer) forget(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stop := r.stops[node]; stop != nil {
		stop()
	}
	delete(r.stops, node)
	delete(r.states, node)
	delete(r.failed, node)
}
