// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
)

// errClosed answers every request that reaches a closed cluster.
var errClosed = errors.New("maintenancetest: the cluster is closed")

// Options shape a cluster. The zero value works: real time, deleted pods vanish at once,
// and no controller runs.
type Options struct {
	// Clock gives all times and timers. Default: the real clock, which inside a
	// testing/synctest bubble is the bubble's.
	Clock clock.WithDelayedExecution

	// Termination is how long a deleted pod stays, terminating, before it vanishes:
	// 0 (the default) is at once, Never and OwnGrace are the two other special values.
	// A pod built with TerminatesIn has its own.
	Termination time.Duration

	// Scheme knows the kinds that the cluster keeps, those of CustomResourceDefinitions
	// among them. Default: that of client-go.
	Scheme *runtime.Scheme

	// Controllers run from the start; Enable and Disable switch them later.
	Controllers []Controller
}

// Cluster is a fake Kubernetes cluster in memory. Make one with New. All methods are safe
// for concurrent use.
type Cluster struct {
	clock  clock.WithDelayedExecution
	scheme *runtime.Scheme
	client kubernetes.Interface

	mu          sync.Mutex
	store       *store
	termination time.Duration
	controllers map[Controller]bool
	paused      map[string]bool // resources whose watches are paused
	lags        map[string]int  // by how many changes resources lag behind
	timers      map[types.UID]clock.Timer
	uids        int
	records     []*Request
	writes      int
	inFlight    map[*Request]struct{}
	rules       []*Rule
	hook        func(Request) error
	changed     chan struct{}
	closed      chan struct{}
}

// New returns a cluster that holds the namespaces default, kube-system and
// kube-node-lease, and the given objects (see Add).
func New(o Options, objects ...runtime.Object) *Cluster {
	c := &Cluster{
		clock:       o.Clock,
		scheme:      o.Scheme,
		store:       newStore(),
		termination: o.Termination,
		controllers: map[Controller]bool{},
		paused:      map[string]bool{},
		lags:        map[string]int{},
		timers:      map[types.UID]clock.Timer{},
		inFlight:    map[*Request]struct{}{},
		changed:     make(chan struct{}),
		closed:      make(chan struct{}),
	}
	if c.clock == nil {
		c.clock = clock.RealClock{}
	}
	if c.scheme == nil {
		c.scheme = scheme.Scheme
	}
	c.store.sight = c.sight
	for _, k := range o.Controllers {
		c.controllers[k] = true
	}
	c.client = newClientset(c)
	c.Add(Namespace(corev1.NamespaceDefault), Namespace("kube-system"), Namespace(corev1.NamespaceNodeLease))
	c.Add(objects...)
	return c
}

// Client returns the clientset under test. It embeds a *fake.Clientset, whose Discovery
// and less common kinds it uses; requests for the kinds that node maintenance needs obey
// their context as well.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Close ends all watches, answers held requests with an error, and stops the timers of
// terminating pods. Requests made later fail. Close may be called more than once.
func (c *Cluster) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
		return
	default:
	}
	close(c.closed)
	for _, t := range c.timers {
		t.Stop()
	}
	for w := range c.store.watchers {
		w.stop()
	}
}

// ResourceVersion returns the version of the latest change, as a list would.
func (c *Cluster) ResourceVersion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store.version()
}

// Until blocks until done returns true, the context ends, or the cluster is closed. It
// asks again after each change of an object and each request that arrives or is answered,
// so no test has to poll. done may use the cluster.
func (c *Cluster) Until(ctx context.Context, done func() bool) error {
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.closed:
			return errClosed
		}
	}
}

// wake makes every Until look again. The caller holds c.mu.
func (c *Cluster) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}
