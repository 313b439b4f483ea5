// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refused turns an answer that forbids a write into a RefusedError and leaves any other as it is.
// Without a known renewal there never was one.
func (m *Manager) refused(node string, err error) error {
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return err
	}
	k, known := m.recall(node)
	held := known && m.opts.Clock.Now().Before(k.end)
	return &RefusedError{Node: node, Held: held, Lapsed: !held, Err: err}
}

// unreadable is refused for a read. What cannot be read may still be ours, so without a known
// renewal nothing has lapsed.
func (m *Manager) unreadable(node string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	k, known := m.recall(node)
	held := known && m.opts.Clock.Now().Before(k.end)
	return &RefusedError{Node: node, Held: held, Lapsed: known && !held, Err: err}
}

// doubted is err of a read that was to confirm that the lease is another's, as a copy has it, or that it is ours:
// what we knew of it before does not count then.
func doubted(err error) error {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return &RefusedError{Node: refused.Node, Err: refused.Err}
	}
	return err
}
