// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/nodemaint/nodemaint/drainer"
	"github.com/nodemaint/nodemaint/internal/mirror"
	"github.com/nodemaint/nodemaint/lease"
)

// DefaultHolder is the lease holder of the medik8s Node Maintenance Operator, and of ours. Whoever uses it acts as
// that operator: it joins a maintenance of the operator's, and its Stop ends it; and an operator that begins to lead ends what goes on
// under it without a NodeMaintenance. An embedder has a holder of its own.
const DefaultHolder = "node-maintenance"

// Times that a maintenance keeps.
const (
	// LeaseLook is how often a lease is looked at, at least, and how long passes may fail before Succeeded is taken back.
	LeaseLook = time.Minute
	// LeaseRetry is the time between two looks at a lease that is not ours, and between two failures that count.
	LeaseRetry = 5 * time.Second
	// HoldDelay is the time between two times of putting marks back, after the first.
	HoldDelay = 5 * time.Second
	// RetellHold is how long putting a mark back is no news again.
	RetellHold = 15 * time.Minute
	// maxLeaseErrors is how many lease failures in a row are borne.
	maxLeaseErrors = 3
)

// Interface is what an embedder depends on; Engine is the one that works, and a test can have its own.
type Interface interface {
	// Start makes one pass of the maintenance of node, from the state of the pass before, and returns the next one, on an
	// error too.
	Start(ctx context.Context, node string, prior State) (State, error)
	// Stop ends the maintenance of node and gives it back.
	Stop(ctx context.Context, node string) (Restored, error)
	// Watch wakes its reader when a Start is worth while, until ctx ends.
	Watch(ctx context.Context, node string) (<-chan struct{}, error)
}

// Held is a node whose lease a holder has.
type Held = lease.Held

// Lease is what Engine needs of leases; lease.Manager is one.
type Lease interface {
	// Acquire makes the lease ours, or keeps it so. Errors: a *lease.HeldError if somebody else holds it, a
	// *lease.RefusedError if it may not be had; any other fails the pass.
	Acquire(ctx context.Context, n *corev1.Node) (lease.Grant, error)
	// Release lets the next holder have it at once. That it is gone or another's is no error.
	Release(ctx context.Context, node string) error
	// Watch returns at once, and calls changed, which does not block, when the lease has changed, until ctx ends.
	Watch(ctx context.Context, node string, changed func())
	Holder() string
	// HeldByAnother asks the API server, not a copy.
	HeldByAnother(ctx context.Context, node string) (bool, error)
}

// Drainer is what Engine needs of a drain; drainer.Drainer is one.
type Drainer interface {
	// Plan reports what a first Pass would find, and touches nothing.
	Plan(ctx context.Context, node string) (drainer.Report, error)
	// Pass does what is due, and never waits for a pod to go.
	Pass(ctx context.Context, node string) (drainer.Report, error)
	// Cancel returns once no call for node is under way any more.
	Cancel(node string)
	// Watch returns at once, and calls changed, which does not block, when a Pass is worth while, until ctx ends.
	Watch(ctx context.Context, node string, changed func())
}

var (
	_ Interface = &Engine{}
	_ Lease     = &lease.Manager{}
	_ Drainer   = &drainer.Drainer{}
)

// Options of an Engine; the zero value works.
type Options struct {
	// Lease acquires and releases leases; nil means a lease.Manager for DefaultHolder with its defaults. An embedder
	// that is not the operator sets one with a holder of its own.
	Lease Lease
	// Drainer drains; nil means a drainer.Drainer with its defaults.
	Drainer Drainer
	// OnTransition is called before the write that makes a step final, so that what it does happens at least
	// once for that step; an error stops the step, and the same step is tried again by the next call. It gets
	// the context of the Start or Stop. Nil does nothing.
	OnTransition func(ctx context.Context, t Transition) error
	// Clock tells the time and makes the timers of Run; nil means the real one.
	Clock clock.WithTicker
}

// Step is a step of a maintenance that somebody may want to be told of exactly once.
type Step string

// The steps.
const (
	// Begin: the lease is ours; the record is written next.
	Begin Step = "Begin"
	// Succeed: every pod has left; Start returns Succeeded next.
	Succeed Step = "Succeed"
	// Fail: given up; Start returns Failed next.
	Fail Step = "Fail"
	// Uncordon: the node becomes schedulable again with the next write.
	Uncordon Step = "Uncordon"
	// RestoreIncomplete: the record is unreadable; the next write takes off what is certainly ours.
	RestoreIncomplete Step = "RestoreIncomplete"
)

// Transition is one step of the maintenance of a node.
type Transition struct {
	Node string
	Step Step
	// Commands finish by hand what a RestoreIncomplete leaves; nil for other steps.
	Commands []string
}

// Engine maintains nodes. It is safe for concurrent use: two calls for one node queue, and a Stop goes
// first.
type Engine struct {
	client kubernetes.Interface
	opts   Options
	turns  turns

	mu       sync.Mutex
	copies   map[string]*mirror.Mirror[*corev1.Node] // by node, while watched
	memories map[string]*memory                      // by node, from pass to pass
}

// New returns an Engine. It does no I/O.
func New(c kubernetes.Interface, o Options) *Engine {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Lease == nil {
		o.Lease = lease.NewManager(c, DefaultHolder, lease.Options{Clock: o.Clock})
	}
	if o.Drainer == nil {
		o.Drainer = drainer.New(c, drainer.Options{Clock: o.Clock})
	}
	if o.OnTransition == nil {
		o.OnTransition = func(context.Context, Transition) error { return nil }
	}
	return &Engine{client: c, opts: o, copies: map[string]*mirror.Mirror[*corev1.Node]{}, memories: map[string]*memory{}}
}

func (e *Engine) now() time.Time { return e.opts.Clock.Now() }
