// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEndSoon(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct {
		reason string
		run    func(context.Context) error
		took   time.Duration
		err    error
	}{
		{"it ends by itself", func(context.Context) error { return broken }, 0, broken},
		{"it ends when told to", func(ctx context.Context) error { <-ctx.Done(); return nil }, time.Minute, nil},
		{
			"it takes a while to come to rest",
			func(ctx context.Context) error { <-ctx.Done(); <-time.After(4 * time.Second); return broken }, time.Minute + 4*time.Second, broken,
		},
		{"it never ends", func(context.Context) error { <-time.After(time.Hour); return nil }, time.Minute + endLimit, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				require.ErrorIs(t, endSoon(ctx, tc.run), tc.err)
				require.Equal(t, tc.took, time.Since(began))
				<-time.After(2 * time.Hour) // what was left behind has ended too
			})
		})
	}
}
