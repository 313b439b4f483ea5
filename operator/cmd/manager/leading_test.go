// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// answering is an API server that answers every request with that code, a while after it came.
func answering(code int, after time.Duration) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		<-time.After(after)
		return &http.Response{StatusCode: code, Body: http.NoBody, Request: r}, nil
	})
}

func send(t *testing.T, c *rest.Config, method, path string) error {
	t.Helper()
	sent, err := rest.HTTPClientFor(c)
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), method, "http://server"+path, strings.NewReader("{}"))
	require.NoError(t, err)
	answer, err := sent.Do(r)
	if err == nil {
		err = answer.Body.Close()
	}
	return err
}

// A process that is frozen past its leadership and woken writes nothing, whatever its election believes.
func TestOnlyTheLeaderWrites(t *testing.T) {
	const leases, events = "/apis/coordination.k8s.io/v1/namespaces/o/leases", "/api/v1/namespaces/o/events"
	for _, tc := range []struct {
		reason       string
		method, path string // what the election asks for
		code         int
		took, frozen time.Duration
		may          bool
	}{
		{reason: "elected", method: http.MethodPost, path: leases, code: http.StatusCreated, may: true},
		{reason: "renewed", method: http.MethodPut, path: leases + "/l", code: http.StatusOK, frozen: renewDeadline - 1, may: true},
		{reason: "frozen since", method: http.MethodPut, path: leases + "/l", code: http.StatusOK, frozen: renewDeadline},
		{reason: "the answer came late", method: http.MethodPut, path: leases + "/l", code: http.StatusOK, took: renewDeadline / 2, frozen: renewDeadline / 2},
		{reason: "refused", method: http.MethodPut, path: leases + "/l", code: http.StatusConflict},
		{reason: "only read", method: http.MethodGet, path: leases + "/l", code: http.StatusOK},
		{reason: "an event of the election", method: http.MethodPost, path: events, code: http.StatusCreated},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &leading{}
				guarded := l.guard(&rest.Config{Transport: answering(http.StatusOK, 0)})
				require.ErrorIs(t, send(t, guarded, http.MethodPost, "/pods/p/eviction"), errNotLeading, "nobody was elected yet")
				require.NoError(t, send(t, l.elect(&rest.Config{Transport: answering(tc.code, tc.took)}), tc.method, tc.path))
				<-time.After(tc.frozen)
				for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
					err := send(t, guarded, method, "/nodes/n")
					if tc.may {
						require.NoError(t, err, method)
					} else {
						require.ErrorIs(t, err, errNotLeading, method)
					}
				}
				require.NoError(t, send(t, guarded, http.MethodGet, "/nodes/n"), "reading harms nobody")
			})
		})
	}
}

func TestElapsed(t *testing.T) {
	now := time.Now()
	require.Equal(t, time.Minute, elapsed(now, now.Add(time.Minute)))
	require.Equal(t, time.Minute, elapsed(now.Round(0), now.Add(time.Minute)), "one of them has no steady clock")
}
