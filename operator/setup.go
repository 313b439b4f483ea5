// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

// DefaultMaxConcurrentReconciles is how many objects are worked on at once.
const DefaultMaxConcurrentReconciles = 20

// The pause after a pass that could not be made grows between these.
const (
	retryMin = 100 * time.Millisecond
	retryMax = time.Minute
)

// passLimit is how long a pass, or a try to give a node back, may take. One that hangs for longer could not be made:
// it is tried again after a pause, and meanwhile its worker has time for other objects.
const passLimit = 30 * time.Second

// SetupOptions say how the controller is set up.
type SetupOptions struct {
	// Engine makes the engine that maintains nodes; its hook must be the one given. Required.
	Engine func(onTransition func(context.Context, maintenance.Transition) error) maintenance.Interface
	// Held says which nodes the engine's holder holds, as lease.Manager does. When the operator begins to lead, those
	// that no NodeMaintenance is for are given back, once. Nil means that nobody looks: for a holder under whose name
	// somebody maintains nodes without objects.
	Held func(context.Context) ([]maintenance.Held, error)
	// MaxConcurrentReconciles is how many objects are worked on at once; 0 means
	// DefaultMaxConcurrentReconciles.
	MaxConcurrentReconciles int
	// Client reads NodeMaintenances from the manager's cache, which gets an index of them by node, and writes them and the
	// events of phases; nil means the manager's.
	Client client.Client
	// Itself is the pod that the operator runs in, which the engine lets leave a node last. That only it is left is
	// written at once. The zero value means none.
	Itself v1beta1.PodReference
}

// Setup adds the controller to the manager. Errors: options that make no sense, or what the manager says.
func Setup(mgr ctrl.Manager, o SetupOptions) error {
	if o.Engine == nil {
		return errors.New("operator.SetupOptions.Engine is missing")
	}
	if o.MaxConcurrentReconciles == 0 {
		o.MaxConcurrentReconciles = DefaultMaxConcurrentReconciles
	}
	if o.Client == nil {
		o.Client = mgr.GetClient()
	}
	t := &teller{
		client:   o.Client,
		recorder: mgr.GetEventRecorderFor(eventSource), //nolint:staticcheck // the newer one writes events.k8s.io, for which we have no right
		clock:    clock.RealClock{},
	}
	engine := o.Engine(t.onTransition)
	r := &Reconciler{
		client: o.Client, index: &index{cache: mgr.GetFieldIndexer()}, live: mgr.GetAPIReader(), engine: engine,
		teller: t, watches: newWatches(engine), passes: newPasses(), pace: newPace(), written: newWritten(), itself: o.Itself, clock: clock.RealClock{},
	}
	if err := mgr.Add(r.watches); err != nil {
		return fmt.Errorf("adding the watches of nodes: %w", err)
	}
	if o.Held != nil {
		if err := mgr.Add(&leftovers{r, o.Held}); err != nil {
			return fmt.Errorf("adding the look for nodes left over: %w", err)
		}
	}
	return r.build(mgr, o.MaxConcurrentReconciles)
}

func (r *Reconciler) build(mgr ctrl.Manager, workers int) error {
	toItself := &handler.TypedEnqueueRequestForObject[*v1beta1.NodeMaintenance]{}
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodemaintenance").
		For(&v1beta1.NodeMaintenance{}, builder.WithPredicates(notOnlyStatus())).
		Watches(&v1beta1.NodeMaintenance{}, handler.EnqueueRequestsFromMapFunc(r.rivals), builder.WithPredicates(changesWhoActs())).
		Watches(&v1beta1.NodeMaintenance{}, r.passes.handler()).
		WatchesRawSource(source.TypedChannel[*v1beta1.NodeMaintenance, reconcile.Request](r.watches.events, toItself)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			ReconciliationTimeout:   passLimit,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryMin, retryMax),
		}).
		Complete(r)
}

// notOnlyStatus drops updates that change nothing but the status, which only we write.
func notOnlyStatus() predicate.Predicate {
	return predicate.Or[client.Object](
		predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return beginsToGo(e) || losesFinalizer(e) }},
	)
}

// beginsToGo says whether an object is being deleted from now on. What changes on it after that, our own words most of all,
// must not cut the pause between two tries to give its node back short.
func beginsToGo(e event.UpdateEvent) bool {
	return e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
}

// losesFinalizer says whether somebody took our finalizer off, as kubectl replace does: an object without it
// would leave its node behind.
func losesFinalizer(e event.UpdateEvent) bool {
	return controllerutil.ContainsFinalizer(e.ObjectOld, v1beta1.Finalizer) && !controllerutil.ContainsFinalizer(e.ObjectNew, v1beta1.Finalizer)
}

// changesWhoActs passes what may change which object acts for a node: one that is new, going, gone or failed.
func changesWhoActs() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { // at a start, all are created; those we know are not new
			return !controllerutil.ContainsFinalizer(e.Object, v1beta1.Finalizer)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			nm, ok := e.ObjectNew.(*v1beta1.NodeMaintenance)
			return ok && (nm.DeletionTimestamp != nil || nm.Status.Phase == v1beta1.MaintenanceFailed)
		},
	}
}

// rivals returns the other objects for the node of o.
func (r *Reconciler) rivals(ctx context.Context, o client.Object) []reconcile.Request {
	nm, ok := o.(*v1beta1.NodeMaintenance)
	if !ok {
		return nil
	}
	all, err := r.cached(ctx, nm.Spec.NodeName)
	if err != nil {
		return nil // the cache is closing
	}
	var out []reconcile.Request
	for _, other := range all {
		if other.Name != nm.Name {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&other)})
		}
	}
	return out
}
