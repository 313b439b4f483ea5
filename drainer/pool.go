// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodemaint/nodemaint/internal/mirror"
)

// pool shares live copies between nodes: one a key, from its first user to its last.
type pool[T runtime.Object] struct {
	start   func(ctx context.Context, key string, changed func()) *mirror.Mirror[T]
	changed func(key string, users []string)

	mu   sync.Mutex
	held map[string]*held[T]
}

type held[T runtime.Object] struct {
	copy   *mirror.Mirror[T]
	cancel context.CancelFunc
	users  map[string]bool // nodes
	which  string          // the objects that the copy had last, as told to others
}

func newPool[T runtime.Object](start func(context.Context, string, func()) *mirror.Mirror[T], changed func(key string, users []string)) *pool[T] {
	return &pool[T]{start: start, changed: changed, held: map[string]*held[T]{}}
}

// use returns the copy of that key, which lives at least until node leaves it. Of ctx it takes the
// values, not the end: others may use the copy longer.
func (p *pool[T]) use(ctx context.Context, key, node string) *mirror.Mirror[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.held[key]
	if h == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		h = &held[T]{cancel: cancel, users: map[string]bool{}}
		h.copy = p.start(ctx, key, func() { p.changed(key, p.users(key)) })
		p.held[key] = h
	}
	h.users[node] = true
	return h.copy
}

// get returns the copy of that key if one lives and can be believed.
func (p *pool[T]) get(key string) *mirror.Mirror[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.held[key]; h != nil && h.copy.Live() {
		return h.copy
	}
	return nil
}

// others says whether the copy of that key has other objects than the last time: which names them all.
func (p *pool[T]) others(key, which string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.held[key]
	if h == nil {
		return true
	}
	before := h.which
	h.which = which
	return before != which
}

// keep ends node's use of all copies but those of the keys it still needs.
func (p *pool[T]) keep(node string, needs map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, h := range p.held {
		if _, ok := needs[key]; ok {
			continue
		}
		if delete(h.users, node); len(h.users) == 0 {
			h.cancel()
			delete(p.held, key)
		}
	}
}

// users returns the nodes that use the copy of that key.
func (p *pool[T]) users(key string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.held[key]
	if h == nil {
		return nil
	}
	return slices.Collect(maps.Keys(h.users))
}
