// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"sync/atomic"
	"time"
)

// Gather returns a function that says that something has changed. wake is called the delay after a change, once for
// all changes within it, each time by a goroutine of its own. changed does not block.
func Gather(delay time.Duration, wake func()) (changed func()) {
	var soon atomic.Bool // a wake is on its way
	return func() {
		if soon.CompareAndSwap(false, true) {
			time.AfterFunc(delay, func() {
				soon.Store(false) // first: what changes from here on is not seen by this one for sure
				wake()
			})
		}
	}
}
