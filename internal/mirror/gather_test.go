// SPDX-License-Identifier: Apache-2.0

package mirror_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodemaint/nodemaint/internal/mirror"
)

func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := make(chan time.Duration, 10)
		began := time.Now()
		changed := mirror.Gather(time.Second, func() { woken <- time.Since(began) })
		for range 10 { // a change each 300 ms
			changed()
			<-time.After(300 * time.Millisecond)
		}
		<-time.After(time.Minute)
		changed()
		<-time.After(time.Minute)

		// The changes of 0, 1.2 and 2.4 s each begin to wait; those after them go with them.
		for _, at := range []time.Duration{time.Second, 2200 * time.Millisecond, 3400 * time.Millisecond, 64 * time.Second} {
			require.Equal(t, at, <-woken)
		}
		require.Empty(t, woken)
	})
}
