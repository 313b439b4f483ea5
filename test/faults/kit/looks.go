// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/nodemaint/nodemaint/test/invariant"
)

// looks is how each node has to look while it is not under maintenance. Whoever changes a node and whoever looks at
// all of them take turns, so that no look falls between a change and its note here.
type looks struct {
	mu sync.Mutex
	of map[string]invariant.Look
}

func newLooks() *looks { return &looks{of: map[string]invariant.Look{}} }

func (l *looks) set(node string, look invariant.Look) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[node] = look
}

// forget says that a node is not to be compared any more.
func (l *looks) forget(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, node)
}

// change makes a change of a node and notes how it looks after it.
func (l *looks) change(node string, note func(invariant.Look) invariant.Look, change func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := change(); err != nil {
		return err
	}
	l.of[node] = note(l.of[node].Clone())
	return nil
}

// during runs f while no node is changed.
func (l *looks) during(f func(map[string]invariant.Look) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return f(maps.Clone(l.of))
}

// touched is the key of the label and of the taint that others put on a node while it is under maintenance.
const touched = "example.com/touched"

// touch returns a look with that label and taint.
func touch(l invariant.Look, value string) invariant.Look {
	l.Labels[touched] = value
	l.Taints = slices.DeleteFunc(l.Taints, func(t string) bool { return strings.HasPrefix(t, touched+"=") })
	l.Taints = append(l.Taints, touched+"="+value+":NoSchedule")
	slices.Sort(l.Taints)
	return l
}
