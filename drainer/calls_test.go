// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// recorder makes calls that say when they begin and end when told.
type recorder struct {
	mu      sync.Mutex
	began   []string
	dropped []string
	goOn    chan struct{}
}

func (r *recorder) calls(node string, n int) []call {
	var out []call
	for i := range n {
		name := fmt.Sprintf("%s%d", node, i)
		out = append(out, call{
			run: func() {
				r.mu.Lock()
				r.began = append(r.began, name)
				r.mu.Unlock()
				<-r.goOn
			},
			dropped: func() { r.dropped = append(r.dropped, name) },
		})
	}
	return out
}

// step lets one call end and returns what has begun since the last step.
func (r *recorder) step() []string {
	select {
	case r.goOn <- struct{}{}:
	default:
	}
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	began := r.began
	r.began = nil
	return began
}

func TestCallsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{goOn: make(chan struct{})}
		c := newCalls(1)
		c.add("a", r.calls("a", 3)...)
		c.add("b", r.calls("b", 2)...)
		c.add("c")
		synctest.Wait()
		var order []string
		for range 6 {
			began := r.step()
			require.LessOrEqual(t, len(began), 2, "at most one at once: the first stood already")
			order = append(order, began...)
		}
		require.Equal(t, []string{"a0", "a1", "b0", "a2", "b1"}, order, "nodes take turns, each node's in order")
		require.Empty(t, c.waiting)
		require.Empty(t, c.byNode)
		require.Empty(t, c.turns)
	})
}

func TestCallsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{goOn: make(chan struct{})}
		c := newCalls(1)
		c.add("a", r.calls("a", 3)...)
		c.add("b", r.calls("b", 2)...)
		synctest.Wait()
		require.Equal(t, []string{"a0"}, r.began)

		c.drop("a")
		require.Equal(t, []string{"a1", "a2"}, r.dropped, "those that have not begun")
		c.drop("nobody")
		c.add("a", r.calls("A", 3)...)
		require.Equal(t, []string{"b", "a"}, c.turns, "dropped and added again: one turn, at the end")

		var order []string
		for range 6 {
			order = append(order, r.step()...)
		}
		require.Equal(t, []string{"a0", "b0", "A0", "b1", "A1", "A2"}, order)
	})
}

func TestCallsOfOneNodeLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{goOn: make(chan struct{})}
		defer close(r.goOn)
		c := newCalls(4)
		c.add("a", r.calls("a", 9)...)
		synctest.Wait()
		require.Len(t, r.began, 2, "calls that hang take half")
		c.add("b", r.calls("b", 9)...)
		synctest.Wait()
		require.Len(t, r.began, 4)
		require.Equal(t, 4, c.flying)
	})
}
