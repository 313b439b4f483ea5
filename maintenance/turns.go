// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"errors"
	"sync"
)

// ErrStopped says that a Start, or a Run, was ended by a Stop of the same node.
var ErrStopped = errors.New("the maintenance of the node is being stopped")

// turns lets one call at a time work on a node. A Stop ends the Start under way and those that wait, and
// goes before those that come after it. The zero value is ready.
type turns struct {
	mu    sync.Mutex
	nodes map[string]*turn
}

type turn struct {
	users   int // calls that work or wait
	stops   int // Stops that wait
	came    int // Stops that ever came
	busy    bool
	cancel  context.CancelCauseFunc // of the Start under way
	changed chan struct{}           // closed when busy or stops change
}

// visit is what one Start, or one Run of many, has to do with a node. It ends with the next Stop.
type visit struct {
	turns *turns
	node  string
	turn  *turn
	came  int // Stops that came before it
}

// visit begins a visit; leave ends it.
func (t *turns) visit(node string) *visit {
	n := t.join(node)
	t.mu.Lock()
	defer t.mu.Unlock()
	return &visit{turns: t, node: node, turn: n, came: n.came}
}

func (v *visit) leave() { v.turns.quit(v.node, v.turn) }

// start waits for the turn of a Start. The context it returns ends when a Stop wants the node. A Stop that
// came since the visit began is an error.
func (v *visit) start(ctx context.Context) (context.Context, func(), error) {
	t, n := v.turns, v.turn
	for {
		t.mu.Lock()
		if n.came != v.came {
			t.mu.Unlock()
			return nil, nil, ErrStopped
		}
		if !n.busy && n.stops == 0 {
			ctx, cancel := context.WithCancelCause(ctx)
			n.busy, n.cancel = true, cancel
			t.mu.Unlock()
			return ctx, func() { cancel(nil); t.free(n) }, nil
		}
		changed := n.changed
		t.mu.Unlock()
		if err := await(ctx, changed); err != nil {
			return nil, nil, err
		}
	}
}

// stop ends a Start under way and waits for the turn of a Stop.
func (t *turns) stop(ctx context.Context, node string) (func(), error) {
	n := t.join(node)
	t.mu.Lock()
	n.stops++
	n.came++
	n.wake()
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		n.stops--
		n.wake()
	}()
	for {
		t.mu.Lock()
		if !n.busy {
			n.busy, n.cancel = true, nil
			t.mu.Unlock()
			return func() { t.free(n); t.quit(node, n) }, nil
		}
		if n.cancel != nil {
			n.cancel(ErrStopped)
		}
		changed := n.changed
		t.mu.Unlock()
		if err := await(ctx, changed); err != nil {
			t.quit(node, n)
			return nil, err
		}
	}
}

func await(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *turns) join(node string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.nodes[node]
	if n == nil {
		n = &turn{changed: make(chan struct{})}
		if t.nodes == nil {
			t.nodes = map[string]*turn{}
		}
		t.nodes[node] = n
	}
	n.users++
	return n
}

// free ends the turn of a call that worked.
func (t *turns) free(n *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n.busy, n.cancel = false, nil
	n.wake()
}

// quit forgets a node that nobody uses.
func (t *turns) quit(node string, n *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.users--; n.users == 0 {
		delete(t.nodes, node)
	}
}

func (n *turn) wake() {
	close(n.changed)
	n.changed = make(chan struct{})
}
