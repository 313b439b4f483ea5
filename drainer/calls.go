// SPDX-License-Identifier: Apache-2.0

package drainer

import "sync"

// calls runs calls beside each other, at most limit at once; nodes with calls to make take turns.
type calls struct {
	mu      sync.Mutex
	limit   int
	flying  int
	turns   []string // nodes with waiting calls, the next first
	waiting map[string][]call
}

// call is one of run, in a goroutine of its own, or dropped, if it is not to be made any more.
type call struct{ run, dropped func() }

func newCalls(limit int) *calls { return &calls{limit: limit, waiting: map[string][]call{}} }

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
	c.mu.Unlock()
	for _, call := range dropped {
		call.dropped()
	}
}

// start begins as many calls as the limit allows, one a node in turn.
func (c *calls) start() {
	for c.flying < c.limit && len(c.turns) > 0 {
		node := c.turns[0]
		c.turns = c.turns[1:]
		queue := c.waiting[node]
		if len(queue) == 0 {
			continue // dropped meanwhile
		}
		next := queue[0]
		if c.waiting[node] = queue[1:]; len(queue) > 1 {
			c.turns = append(c.turns, node)
		} else {
			delete(c.waiting, node)
		}
		c.flying++
		go func() {
			defer c.finished()
			next.run()
		}()
	}
}

func (c *calls) finished() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flying--
	c.start()
}
