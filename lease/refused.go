// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"

	coordinationv1 "k8s.io/api/coordination/v1"
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

// doubted is err of a read that was to confirm what a copy shows. If that is another's lease nobody knows whose it is,
// whatever kept it from being read, and what we knew of it before does not count.
func (m *Manager) doubted(node string, copied *coordinationv1.Lease, err error) error {
	if holderOf(copied) == m.holder {
		return err
	}
	var refused *RefusedError
	if errors.As(err, &refused) {
		err = refused.Err
	}
	return &RefusedError{Node: node, Err: err}
}
