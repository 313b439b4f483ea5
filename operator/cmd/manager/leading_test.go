// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// answering is an API server that answers every request with that code, a while after it came.
func answering(code int, after time.Duration) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		<-time.After(after)
		return &http.Response{StatusCode: code, Body: http.NoBody, Request: r}, nil
	})
}

func send(t *testing.T, c *rest.Config, method, path, body string) error {
	t.Helper()
	sent, err := rest.HTTPClientFor(c)
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), method, "http://server"+path, strings.NewReader(body))
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
	const ours = `{"spec":{"holderIdentity":"us"}}`
	for _, tc := range []struct {
		reason       string
		method, path string // what the election asks for
		body         string
		code         int
		took, frozen time.Duration
		may          bool
	}{
		{reason: "elected", method: http.MethodPost, path: leases, body: ours, code: http.StatusCreated, may: true},
		{reason: "renewed", method: http.MethodPut, path: leases + "/l", body: ours, code: http.StatusOK, frozen: renewDeadline - 1, may: true},
		{reason: "frozen since", method: http.MethodPut, path: leases + "/l", body: ours, code: http.StatusOK, frozen: renewDeadline},
		{reason: "the answer came late", method: http.MethodPut, path: leases + "/l", body: ours, code: http.StatusOK, took: renewDeadline / 2, frozen: renewDeadline / 2},
		{reason: "refused", method: http.MethodPut, path: leases + "/l", body: ours, code: http.StatusConflict},
		{reason: "only read", method: http.MethodGet, path: leases + "/l", body: ours, code: http.StatusOK},
		{reason: "an event of the election", method: http.MethodPost, path: events, body: "{}", code: http.StatusCreated},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &leading{}
				guarded := l.guard(&rest.Config{Transport: answering(http.StatusOK, 0)})
				require.ErrorIs(t, send(t, guarded, http.MethodPost, "/pods/p/eviction", "{}"), errNotLeading, "nobody was elected yet")
				require.NoError(t, send(t, l.elect(&rest.Config{Transport: answering(tc.code, tc.took)}), tc.method, tc.path, tc.body))
				<-time.After(tc.frozen)
				for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
					err := send(t, guarded, method, "/nodes/n", "{}")
					if tc.may {
						require.NoError(t, err, method)
					} else {
						require.ErrorIs(t, err, errNotLeading, method)
					}
				}
				require.NoError(t, send(t, guarded, http.MethodGet, "/nodes/n", ""), "reading harms nobody")
			})
		})
	}
}

func TestElapsed(t *testing.T) {
	now := time.Now()
	require.Equal(t, time.Minute, elapsed(now, now.Add(time.Minute)))
	require.Equal(t, time.Minute, elapsed(now.Round(0), now.Add(time.Minute)), "one of them has no steady clock")
}

// What the election itself sends says who leads. Once it is given up, another may lead at once.
func TestLeadershipIsGivenUp(t *testing.T) {
	echo := roundTripper(func(r *http.Request) (*http.Response, error) {
		header := http.Header{"Content-Type": r.Header["Content-Type"]}
		return &http.Response{StatusCode: http.StatusOK, Header: header, Body: r.Body, Request: r}, nil
	})
	l := &leading{}
	client, err := kubernetes.NewForConfig(l.elect(&rest.Config{Transport: echo}))
	require.NoError(t, err)
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "o", Name: "l"}, Client: client.CoordinationV1()}
	leads := func() bool { return l.lasts(time.Now()) }
	require.False(t, leads())
	require.NoError(t, lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us", LeaseDurationSeconds: 15}))
	require.True(t, leads())
	require.NoError(t, lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us", LeaseDurationSeconds: 15}))
	require.True(t, leads())
	require.NoError(t, lock.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}))
	require.False(t, leads())
}

// A leader that is woken late believes that it still leads, and gives the lease up as it finds it: the next one's.
func TestALeaseThatMayBeAnothersIsNotGivenUp(t *testing.T) {
	const path, ours, given = "/apis/coordination.k8s.io/v1/namespaces/o/leases/l", `{"spec":{"holderIdentity":"us"}}`, `{"spec":{"holderIdentity":""}}`
	for frozen, want := range map[time.Duration]error{renewDeadline - 1: nil, renewDeadline: errNotLeading, leaseDuration + time.Minute: errNotLeading} {
		t.Run(frozen.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := (&leading{}).elect(&rest.Config{Transport: answering(http.StatusOK, 0)})
				require.ErrorIs(t, send(t, c, http.MethodPut, path, given), errNotLeading, "it never was ours")
				require.NoError(t, send(t, c, http.MethodPut, path, ours))
				<-time.After(frozen)
				require.ErrorIs(t, send(t, c, http.MethodPut, path, given), want)
				require.NoError(t, send(t, c, http.MethodPut, path, ours), "to ask for it harms nobody: the version says whose it is")
			})
		})
	}
}
