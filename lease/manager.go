// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/nodemaint/nodemaint/internal/linger"
	"github.com/nodemaint/nodemaint/internal/mirror"
)

// Defaults of Options.
const (
	// DefaultNamespace is where the leases of nodes are by agreement of the medik8s operators.
	DefaultNamespace = "medik8s-leases"
	// DefaultDuration is how long a lease is valid after its last renewal.
	DefaultDuration = time.Hour
)

const namePrefix = "node-"

// namespaceRest is how long after it was created the namespace is not created again: who missed it just before
// tries the lease again.
const namespaceRest = time.Second

// Options of a Manager; the zero value is the agreement of the medik8s operators.
type Options struct {
	// Namespace of the leases; it is created if it is missing. Empty means DefaultNamespace.
	Namespace string
	// Duration of a lease, in whole seconds; a third of it passes between renewals. 0 means
	// DefaultDuration, and so does what no lease can have: less than a second, or more than 68 years.
	// What counts is what the lease says: the managers of one holder should agree.
	Duration time.Duration
	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
}

// Manager acquires and releases the leases of nodes for one holder. It is safe for concurrent use;
// two calls at once for one node are the caller's to avoid.
type Manager struct {
	client kubernetes.Interface
	holder string
	opts   Options

	creating chan struct{} // holds a value while somebody creates the namespace
	created  time.Time     // when that was done last

	mu     sync.Mutex
	copies map[string]*mirror.Mirror[*coordinationv1.Lease] // by node, while watched
	known  map[string]known                                 // by node, while we hold its lease
}

// NewManager returns a Manager for holder, the name that stands in the leases. It does no I/O.
func NewManager(c kubernetes.Interface, holder string, o Options) *Manager {
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.Duration < time.Second || o.Duration/time.Second > math.MaxInt32 {
		o.Duration = DefaultDuration
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Manager{
		client: c, holder: holder, opts: o, creating: make(chan struct{}, 1),
		copies: map[string]*mirror.Mirror[*coordinationv1.Lease]{}, known: map[string]known{},
	}
}

// Holder returns the name that stands in our leases.
func (m *Manager) Holder() string { return m.holder }

// Name returns the name of a node's lease: "node-" and the node's name in lower case.
func Name(node string) string { return namePrefix + strings.ToLower(node) }

// CheckName returns an error that wraps ErrNameTooLong if node's name is too long for a lease.
func CheckName(node string) error {
	if name := Name(node); len(name) > validation.DNS1123SubdomainMaxLength {
		return fmt.Errorf("node name of %d characters: %w: %d characters, at most %d are allowed",
			len(node), ErrNameTooLong, len(name), validation.DNS1123SubdomainMaxLength)
	}
	return nil
}

// Grant is what Acquire gives.
type Grant struct {
	// RenewIn is when to ask again at the latest, from now.
	RenewIn time.Duration
	// Expires is when the lease runs out unless it is renewed; zero if not known: then nothing is said of its end.
	Expires time.Time
	// Resumed says that the lease was ours already when we asked.
	Resumed bool
}

// Acquire makes the lease of n ours, or keeps it so; it writes only what is owed. Of n it reads name and UID. Errors: HeldError if
// somebody else holds it, RefusedError if it may not be had or nobody can say whose it is, ErrNameTooLong, ErrNoHolder, else what
// the API server answered.
func (m *Manager) Acquire(ctx context.Context, n *corev1.Node) (Grant, error) {
	if err := CheckName(n.Name); err != nil {
		return Grant{}, err
	}
	if m.holder == "" {
		return Grant{}, ErrNoHolder
	}
	var grant Grant
	look := m.look
	err := retry.OnError(conflicts, collided, func() error {
		var err error
		grant, err = m.acquire(ctx, n, look)
		look = m.lookLive // a copy that led to a collision is old
		return err
	})
	return grant, err
}

// conflicts bounds how often a collision of two writers is looked at again in one call.
var conflicts = retry.DefaultRetry

// errVanished says that a lease went between our read and our write.
var errVanished = errors.New("lease vanished")

// collided says whether somebody else wrote between our read and our write.
func collided(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errVanished)
}

// reader reads the lease of a node; nil if there is none. It says whether that was from a copy.
type reader func(ctx context.Context, node string) (l *coordinationv1.Lease, copied bool, err error)

func (m *Manager) acquire(ctx context.Context, n *corev1.Node, look reader) (Grant, error) {
	l, copied, err := look(ctx, n.Name)
	if err != nil {
		return Grant{}, err
	}
	want := m.want(n)
	last, ever := m.recall(n.Name)
	todo := decide(l, want, last.settled(), m.opts.Clock.Now())
	// That it is another's rests on a live read, and so does that it is ours, the first time: the copy may be
	// from before a release. If there is one where the copy shows none, creating it fails.
	if copied && todo != create && (!ever || todo == wait || todo == take) {
		was := l
		if l, err = m.get(ctx, n.Name); err != nil {
			if ctx.Err() != nil {
				return Grant{}, err
			}
			return Grant{}, m.doubted(n.Name, was, err)
		}
		todo = decide(l, want, last.settled(), m.opts.Clock.Now())
	}
	ours := l != nil && holderOf(l) == m.holder
	switch {
	case ours:
		last.end = expiry(l)
		m.remember(n.Name, last)
	case l != nil: // of a renewal that somebody wrote over nothing is left
		m.forget(n.Name)
	}
	switch todo {
	case keep:
	case wait:
		return Grant{}, &HeldError{Node: n.Name, Holder: holderOf(l), Expires: expiry(l)}
	default:
		last.argued = l != nil && fresh(last.said, want, m.opts.Clock.Now())
		last.said = written(l, want, todo, m.opts.Clock.Now())
		if l, err = m.write(ctx, n.Name, last.said, todo); err != nil {
			return Grant{}, m.refused(n.Name, err)
		}
	}
	last.end = expiry(l)
	m.remember(n.Name, last)
	return Grant{RenewIn: max(0, renewAt(l).Sub(m.opts.Clock.Now())), Expires: last.end, Resumed: ours}, nil
}

// want returns the lease of n as we would have it, less its times.
func (m *Manager) want(n *corev1.Node) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(n.Name), Namespace: m.opts.Namespace,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: n.Name, UID: n.UID,
			}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &m.holder,
			LeaseDurationSeconds: ptr.To(int32(m.opts.Duration / time.Second)),
		},
	}
}

func (m *Manager) leases() coordinationclient.LeaseInterface {
	return m.client.CoordinationV1().Leases(m.opts.Namespace)
}

func (m *Manager) write(ctx context.Context, node string, l *coordinationv1.Lease, a action) (*coordinationv1.Lease, error) {
	write, done := linger.Write(ctx)
	defer done()
	if a != create {
		out, err := m.leases().Update(write, l, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("updating lease of node %q: %w: %w", node, errVanished, err)
		}
		if err != nil {
			return nil, fmt.Errorf("updating lease of node %q: %w", node, err)
		}
		return out, nil
	}
	out, err := m.leases().Create(write, l, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		if err := m.createNamespace(ctx); err != nil {
			return nil, err
		}
		out, err = m.leases().Create(write, l, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("creating lease of node %q: %w", node, err)
	}
	return out, nil
}

// createNamespace creates the namespace of the leases, once for all who miss it at the same time.
func (m *Manager) createNamespace(ctx context.Context) error {
	select {
	case m.creating <- struct{}{}:
		defer func() { <-m.creating }()
	case <-ctx.Done():
		return fmt.Errorf("creating namespace %q for leases: %w", m.opts.Namespace, context.Cause(ctx))
	}
	if m.opts.Clock.Since(m.created) < namespaceRest {
		return nil
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.opts.Namespace}}
	if _, err := m.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %q for leases: %w", m.opts.Namespace, err)
	}
	m.created = m.opts.Clock.Now()
	return nil
}

// Release deletes the lease of node if it is ours, so that the next holder need not wait. A lease
// that is gone or somebody else's is no error. Errors: what the API server answered.
func (m *Manager) Release(ctx context.Context, node string) error {
	m.forget(node)
	return retry.OnError(conflicts, apierrors.IsConflict, func() error {
		l, err := m.get(ctx, node)
		if err != nil || l == nil || holderOf(l) != m.holder {
			return err
		}
		read := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}}
		if err := m.leases().Delete(ctx, l.Name, read); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting lease of node %q: %w", node, err)
		}
		return nil
	})
}

// HeldByAnother says, by a read from the API server, whether somebody else holds the lease of node now.
// One that has run out is nobody's. Errors: what the API server answered.
func (m *Manager) HeldByAnother(ctx context.Context, node string) (bool, error) {
	l, err := m.get(ctx, node)
	if err != nil || l == nil {
		return false, err
	}
	holder := holderOf(l)
	return holder != "" && holder != m.holder && m.opts.Clock.Now().Before(expiry(l)), nil
}

// look reads the lease from the copy while a watch keeps one, else from the API server.
func (m *Manager) look(ctx context.Context, node string) (*coordinationv1.Lease, bool, error) {
	if c := m.copyOf(node); c != nil && c.Live() {
		l, _ := c.Get(m.opts.Namespace, Name(node))
		return l, true, nil
	}
	return m.lookLive(ctx, node)
}

func (m *Manager) lookLive(ctx context.Context, node string) (*coordinationv1.Lease, bool, error) {
	l, err := m.get(ctx, node)
	return l, false, err
}

// get reads the lease from the API server; nil if there is none.
func (m *Manager) get(ctx context.Context, node string) (*coordinationv1.Lease, error) {
	l, err := m.leases().Get(ctx, Name(node), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, m.unreadable(node, fmt.Errorf("getting lease of node %q: %w", node, err))
	}
	return l, nil
}
