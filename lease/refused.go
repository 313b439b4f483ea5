// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refused turns an answer that forbids a write into a RefusedError and leaves any other as it is.
// Without a known renewal there never was one.
func (m *Manager) refused(node string, err error) error {
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return err
	}
	end, known := m.end(node)
	held := known && m.opts.Clock.Now().Before(end)
	return &RefusedError{Node: node, Held: held, Lapsed: !held, Err: err}
}

// unreadable is refused for a read. What cannot be read may still be ours, so without a known
// renewal nothing has lapsed.
func (m *Manager) unreadable(node string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	end, known := m.end(node)
	held := known && m.opts.Clock.Now().Before(end)
	return &RefusedError{Node: node, Held: held, Lapsed: known && !held, Err: err}
}

func (m *Manager) remember(node string, end time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ends[node] = end
}

func (m *Manager) forget(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ends, node)
}

func (m *Manager) end(node string) (time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	end, ok := m.ends[node]
	return end, ok
}
