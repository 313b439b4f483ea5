// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// known is what a Manager knows of its lease of a node, until it releases or loses it.
type known struct {
	end    time.Time             // when our last renewal runs out
	said   *coordinationv1.Lease // as we last wrote it; nil if we did not
	argued bool                  // it was written before it was due, since others had changed what we said
}

// settled returns what we have said twice; nil if it is worth saying once more.
func (k known) settled() *coordinationv1.Lease {
	if !k.argued {
		return nil
	}
	return k.said
}

func (m *Manager) remember(node string, k known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[node] = k
}

func (m *Manager) forget(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, node)
}

func (m *Manager) recall(node string) (known, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.known[node]
	return k, ok
}
