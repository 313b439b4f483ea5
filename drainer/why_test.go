// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhy(t *testing.T) {
	for _, row := range []struct {
		reason string
		pod    Pod
		want   string
	}{
		{"it only takes its time", Pod{}, ""},
		{"the server's words, on one line", Pod{Reason: "no,\n\tnot now"}, "no, not now"},
		{"a budget that has no more than it needs", Pod{Namespace: "shop", Budgets: []Budget{{Name: "web", Healthy: 3, Desired: 3}}},
			"budget shop/web needs 3 healthy pods and has 3"},
		{"one whose disruptions are used up", Pod{Namespace: "shop", Budgets: []Budget{{Name: "web", Healthy: 8, Desired: 5}}},
			"budget shop/web needs 5 healthy pods and has 8, and allows no disruption at the moment"},
		{"one that allows some by now", Pod{Namespace: "shop", Budgets: []Budget{{Name: "web", Healthy: 8, Desired: 5, Allowed: 3}}},
			"budget shop/web needs 5 healthy pods and has 8"},
		{"two, with their numbers", Pod{Namespace: "shop", Budgets: []Budget{{Name: "a"}, {Name: "b", Desired: 1}}},
			"budget shop/a needs 0 healthy pods and has 0; budget shop/b needs 1 healthy pods and has 0"},
		{"two for which no such pod is evicted", Pod{Namespace: "shop", Reason: "2 budgets select it", Budgets: []Budget{{Name: "a"}, {Name: "b"}}},
			"2 budgets select it (shop/a, shop/b)"},
	} {
		t.Run(row.reason, func(t *testing.T) { require.Equal(t, row.want, row.pod.Why()) })
	}
}
