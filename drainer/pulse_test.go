// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPulse(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		reason string
		took   []time.Duration // in turn, over and over
		want   time.Duration
	}{
		{"nothing is known yet", nil, 200 * ms},
		{"a quick API server", []time.Duration{20 * ms}, 200 * ms},
		{"one that is under load", []time.Duration{130 * ms, 150 * ms, 170 * ms}, 300 * ms},
		{"some calls that slept do not count", []time.Duration{30 * ms, 30 * ms, 650 * ms}, 200 * ms},
		{"a webhook that takes its time holds nobody up for long", []time.Duration{5 * time.Second}, time.Second},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			var p pulse
			for i := range 45 * len(tt.took) {
				p.beat(tt.took[i%len(tt.took)])
			}
			require.Equal(t, tt.want, p.slow())
		})
	}
}
