// SPDX-License-Identifier: Apache-2.0

package linger_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodemaint/nodemaint/internal/linger"
)

func TestWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		write, done := linger.Write(ctx)
		defer done()
		<-time.After(time.Hour)
		require.NoError(t, write.Err())
		began := time.Now()
		cancel(enough)
		<-write.Done()
		require.Equal(t, linger.Wait, time.Since(began))
		require.ErrorIs(t, context.Cause(write), enough)

		late, done := linger.Write(ctx)
		defer done()
		require.Equal(t, ctx, late, "it has ended: nothing begins")
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		write, done := linger.Write(ctx)
		done()
		require.Error(t, write.Err(), "at once when the write has ended")
	})
}
