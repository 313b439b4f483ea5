// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func configuration(hooks any) *unstructured.Unstructured {
	u := newConfiguration()
	u.SetName(ConfigurationName)
	if hooks != nil {
		u.Object["webhooks"] = hooks
	}
	return u
}

func hook(bundle string) map[string]any {
	client := map[string]any{"service": map[string]any{"name": "s"}}
	if bundle != "" {
		client["caBundle"] = bundle
	}
	return map[string]any{"name": "h", "clientConfig": client, "fieldOfTheFuture": "kept"}
}

func TestWithAuthority(t *testing.T) {
	const want = "Y2E=" // "ca"
	for _, tc := range []struct {
		reason  string
		hooks   any
		after   any
		changed bool
		wantErr string
	}{
		{reason: "no webhook, nobody to tell"},
		{reason: "a webhook as it was applied", hooks: []any{hook("")}, after: []any{hook(want)}, changed: true},
		{reason: "another authority is replaced", hooks: []any{hook("b2xk")}, after: []any{hook(want)}, changed: true},
		{reason: "as it should be", hooks: []any{hook(want)}, after: []any{hook(want)}},
		{reason: "each webhook is told", hooks: []any{hook(want), hook("")}, after: []any{hook(want), hook(want)}, changed: true},
		{reason: "not a list", hooks: "x", wantErr: "reading webhook configuration"},
		{reason: "not a webhook", hooks: []any{"x"}, wantErr: "webhook 0 is a string"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			before := configuration(tc.hooks)
			kept := before.DeepCopy()
			got, changed, err := withAuthority(before, []byte("ca"))
			require.Equal(t, kept, before, "what comes from a cache is not changed")
			if tc.wantErr != "" {
				require.ErrorContains(t, err, tc.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.changed, changed)
			require.Equal(t, configuration(tc.after), got)
		})
	}
}
