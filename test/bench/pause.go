// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// pause returns when the time is over: what is measured takes just that time, or happens at that point of it.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
