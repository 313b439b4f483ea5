// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/nodemaint/nodemaint/internal/mirror"
)

// Watch calls changed whenever the lease of node changes, until ctx ends; meanwhile Acquire reads
// it from the watch and asks the API server only before a verdict or a write. It returns at once.
func (m *Manager) Watch(ctx context.Context, node string, changed func()) {
	c := mirror.Start(ctx, m.client, m.leases(), mirror.Scope[*coordinationv1.Lease]{
		Fields: mirror.ByName(Name(node)), Changed: func(_, _ *coordinationv1.Lease) { changed() },
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.copies[node] = c
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.copies[node] == c {
			delete(m.copies, node)
		}
	})
}

func (m *Manager) copyOf(node string) *mirror.Mirror[*coordinationv1.Lease] {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.copies[node]
}
