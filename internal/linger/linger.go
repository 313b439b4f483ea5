// SPDX-License-Identifier: Apache-2.0

// Package linger gives a write half a second more once its context has ended, so that who looks at the object next
// sees what it did.
package linger

import (
	"context"
	"time"
)

// Wait is how long a write may go on after its context has ended: longer than a healthy API server needs, and
// short for who waits for a node to be given back.
const Wait = 500 * time.Millisecond

// Write returns a context for one write, which ends Wait after ctx; cancel it after the write. Once ctx has ended it is
// ctx: what has not begun does not begin.
func Write(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		return ctx, func() {}
	}
	out, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(Wait, func() { end(context.Cause(ctx)) })
	})
	return out, func() {
		stop()
		end(nil)
	}
}
