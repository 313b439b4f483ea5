// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"fmt"
	"time"
)

// ErrNameTooLong says that a node's name is too long for a lease to be named after it.
var ErrNameTooLong = errors.New("lease name would be too long")

// ErrNoHolder says that a Manager was made without a holder: its leases would be anybody's.
var ErrNoHolder = errors.New("lease holder is empty: give lease.NewManager the name of who works on the node")

// HeldError says that somebody else holds the lease of a node.
type HeldError struct {
	// Node is the node's name.
	Node string
	// Holder is who holds its lease.
	Holder string
	// Expires is when the lease runs out unless its holder renews it.
	Expires time.Time
}

// Error names the node, the holder and the point in time.
func (e *HeldError) Error() string {
	return fmt.Sprintf("lease of node %q is held by %q until %s", e.Node, e.Holder, e.Expires.UTC().Format(time.RFC3339))
}

// RefusedError says that the API server would not let us write, or read, the lease of a node:
// forbidden, invalid, or its namespace is being deleted; or that a copy shows it as not ours and it could not be read, for
// whatever reason.
type RefusedError struct {
	// Node is the node's name.
	Node string
	// Held says that our last renewal is known and has not run out: the lease is still ours.
	Held bool
	// Lapsed says that we hold nothing any more: our last renewal has run out, or there never was one.
	// Neither Held nor Lapsed: it is not known.
	Lapsed bool
	// Err is the API server's answer, or why there was none.
	Err error
}

// Error names the node and gives the API server's words.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("lease of node %q: the API server refuses: %v", e.Node, e.Err)
}

// Unwrap returns the API server's answer.
func (e *RefusedError) Unwrap() error { return e.Err }
