// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"slices"
	"sync"
)

// calls runs calls beside each other, at most limit at once and at most half of them for one node;
// nodes with calls to make take turns.
type calls struct {
	mu      sync.Mutex
	limit   int
	flying  int
	byNode  map[string]int // flying
	turns   []string       // nodes with waiting calls, the next first
	waiting map[string][]call
}

// call is one of run, in a goroutine of its own, or dropped, if it is not to be made any more.
type call struct{ run, dropped func() }

func newCalls(limit int) *calls {
	return &calls{limit: limit, byNode: map[string]int{}, waiting: map[string][]call{}}
}

// add queues calls of node; it does not wait for them.
func (c *calls) add(node string, more ...call) {
	if len(more) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting[node]) == 0 {
		c.turns = append(c.turns, node)
	}
	c.waiting[node] = append(c.waiting[node], more...)
	c.start()
}

// drop takes the calls of node that have not begun out of the queue.
func (c *calls) drop(node string) {
	c.mu.Lock()
	dropped := c.waiting[node]
	delete(c.waiting, node)
	c.turns = slices.DeleteFunc(c.turns, func(n string) bool { return n == node })
	c.mu.Unlock()
	for _, call := range dropped {
		call.dropped()
	}
}

// start begins as many calls as the limits allow, one a node in turn.
func (c *calls) start() {
	for c.flying < c.limit {
		i := slices.IndexFunc(c.turns, func(node string) bool { return c.byNode[node] < c.share() })
		if i < 0 {
			return
		}
		node := c.turns[i]
		c.turns = slices.Delete(c.turns, i, i+1)
		queue := c.waiting[node]
		if len(queue) > 1 {
			c.waiting[node] = queue[1:]
			c.turns = append(c.turns, node)
		} else {
			delete(c.waiting, node)
		}
		c.flying++
		c.byNode[node]++
		go func() {
			defer c.finished(node)
			queue[0].run()
		}()
	}
}

// share is how many calls one node may have under way: calls that hang there leave room for the others.
func (c *calls) share() int { return max(1, c.limit/2) }

// full says whether another call of node would have to wait for those that it has.
func (c *calls) full(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byNode[node]+len(c.waiting[node]) >= c.share()
}

func (c *calls) finished(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flying--
	if c.byNode[node]--; c.byNode[node] == 0 {
		delete(c.byNode, node)
	}
	c.start()
}
