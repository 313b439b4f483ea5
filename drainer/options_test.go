// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		reason string
		o      Options
		says   string // empty: valid
	}{
		{"the zero value", Options{}, ""},
		{"sensible values", Options{GracePeriod: time.Second, Timeout: time.Second, DeleteAfter: time.Hour, MaxInFlight: 1}, ""},
		{"a negative grace period", Options{GracePeriod: -1}, "GracePeriod is -1ns: it must not be negative"},
		{"a grace period that would be 0", Options{GracePeriod: time.Millisecond}, "GracePeriod is 1ms: it must be at least 1s"},
		{"a negative timeout", Options{Timeout: -1}, "Timeout is -1ns"},
		{"a negative deadline", Options{DeleteAfter: -1}, "DeleteAfter is -1ns"},
		{"a negative limit", Options{MaxInFlight: -1}, "MaxInFlight is -1"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			err := tt.o.Validate()
			if tt.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.says)
			}
			o := tt.o.withDefaults()
			require.Positive(t, o.Timeout)
			require.Positive(t, o.MaxInFlight)
			require.True(t, o.GracePeriod <= 0 || o.GracePeriod >= time.Second, "never 0 seconds")
		})
	}
}
