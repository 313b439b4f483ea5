// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const auditLines = `{"kind":"Event","auditID":"1","stage":"ResponseStarted","requestURI":"/api/v1/pods?watch=1","verb":"watch","user":{"username":"u1"},"userAgent":"a","objectRef":{"resource":"pods","apiVersion":"v1"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:00.5Z"}
{"auditID":"2","stage":"ResponseComplete","requestURI":"/x","verb":"create","user":{"username":"u2","extra":{"authentication.kubernetes.io/credential-id":["JTI=1-2"]}},"userAgent":"b","objectRef":{"resource":"pods","namespace":"n","name":"p","subresource":"eviction","apiGroup":"policy"},"responseStatus":{"code":429},"requestReceivedTimestamp":"2026-01-01T00:00:01Z"}

{"auditID":"1","stage":"ResponseComplete","requestURI":"/api/v1/pods?watch=1","verb":"watch","user":{"username":"u1"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:00.5Z"}
{"auditID":"3","stage":"Resp`

func TestParseAudit(t *testing.T) {
	all := []string{"1", "2"}
	tests := map[string]struct {
		reason string
		filter AuditFilter
		want   []string
	}{
		"all":   {reason: "a request counts once, and a line still being written not at all", want: all},
		"user":  {reason: "by user", filter: AuditFilter{User: "u2"}, want: []string{"2"}},
		"verb":  {reason: "by verb", filter: AuditFilter{Verb: "watch"}, want: []string{"1"}},
		"since": {reason: "by time, inclusive", filter: AuditFilter{Since: time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)}, want: []string{"2"}},
		"none":  {reason: "filters are ANDed", filter: AuditFilter{User: "u2", Verb: "watch"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			events, err := parseAudit(strings.NewReader(auditLines), tt.filter)
			require.NoError(t, err)
			var ids []string
			for _, e := range events {
				ids = append(ids, e.ID)
			}
			require.Equal(t, tt.want, ids, tt.reason)
		})
	}
}

func TestParseAuditFields(t *testing.T) {
	events, err := parseAudit(strings.NewReader(auditLines), AuditFilter{})
	require.NoError(t, err)
	require.Equal(t, "ResponseComplete", events[0].Stage, "the last stage stands for the request")
	require.Equal(t, AuditEvent{
		ID: "2", Time: time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC), User: "u2", UserAgent: "b", Credential: "JTI=1-2", Verb: "create",
		Group: "policy", Resource: "pods", Subresource: "eviction", Namespace: "n", Name: "p", URI: "/x", Code: 429,
		Stage: "ResponseComplete",
	}, events[1])
}

func TestParseAuditSaysWhichLineIsBroken(t *testing.T) {
	_, err := parseAudit(strings.NewReader("{}\nnonsense\n"), AuditFilter{})
	require.ErrorContains(t, err, "line 2")
}
