// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"slices"
	"time"
)

// memory is what an Engine knows of one node from pass to pass, until the Stop. It belongs to the call whose turn
// it is.
type memory struct {
	rests          time.Time          // marks are not put back before
	renew, expires time.Time          // when the lease is due, and when it runs out; zero if not known
	blind          time.Time          // since when no pass has come as far as the pods; zero if the last one has
	ignored        []Mark             // marks that were written last and not kept
	told           map[Mark]time.Time // when each mark was news last
	// News that no state has told yet. It outlives a pass that fails: that returns the state before it.
	reheld           []Mark
	evicted, blocked []Pod
}

// memory returns what is known of node.
func (e *Engine) memory(node string) *memory {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.memories[node]
	if m == nil {
		m = &memory{told: map[Mark]time.Time{}}
		e.memories[node] = m
	}
	return m
}

// forget forgets node: what comes next is another maintenance.
func (e *Engine) forget(node string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.memories, node)
}

// lost notes that somebody took marks off, as far as that is news: they are being put back.
func (m *memory) lost(marks []Mark, now time.Time) {
	for _, mark := range marks {
		t, told := m.told[mark]
		if told && now.Sub(t) < RetellHold || slices.Contains(m.reheld, mark) {
			continue
		}
		m.reheld = append(m.reheld, mark)
	}
}

// found notes the news of a report: a drainer tells them once.
func (m *memory) found(r Report) {
	m.evicted = append(m.evicted, r.Evicted...)
	m.blocked = append(m.blocked, r.NewlyBlocked...)
}

// tell returns s with the news that no state before it told. Only a pass that got as far as the pods tells: it has
// seen that the node is held.
func (e *Engine) tell(node string, s State) State {
	s.Reheld, s.Report.Evicted, s.Report.NewlyBlocked = nil, nil, nil
	if !s.Looked {
		return s
	}
	m := e.memory(node)
	for _, mark := range m.reheld {
		m.told[mark] = e.now()
	}
	s.Reheld, s.Report.Evicted, s.Report.NewlyBlocked = m.reheld, m.evicted, m.blocked
	m.reheld, m.evicted, m.blocked = nil, nil, nil
	return s
}
