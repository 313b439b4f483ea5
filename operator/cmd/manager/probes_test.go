// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestEarlyProbes(t *testing.T) {
	address := freeAddress(t)
	e, err := answerEarly(t.Context(), address)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, get(t, address, "/healthz"), "it is alive while it waits")
	require.Equal(t, http.StatusServiceUnavailable, get(t, address, "/readyz"), "and not ready")

	_, err = answerEarly(t.Context(), address)
	require.ErrorContains(t, err, "listening for health probes")

	require.NoError(t, e.close())
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	require.NoError(t, err, "the address is free again")
	require.NoError(t, l.Close())
}

func TestEarlyProbesOff(t *testing.T) {
	e, err := answerEarly(t.Context(), off)
	require.NoError(t, err)
	require.NoError(t, e.close())
}

func TestStartWaitsForAnAPIServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address := freeAddress(t)
	nobody := "http://" + freeAddress(t)
	ended := make(chan error, 1)
	go func() { ended <- start(ctx, &rest.Config{Host: nobody}, &flags{probeAddress: address}, namespaces{}) }()

	require.Eventually(t, func() bool { return tryGet(t, address, "/healthz") == http.StatusOK }, waitFor, tick)
	require.Equal(t, http.StatusServiceUnavailable, get(t, address, "/readyz"))
	cancel()
	require.NoError(t, <-ended, "being told to end while it waits is no failure")
}

func TestStartWithoutCRD(t *testing.T) {
	server, _ := apiServer(t, http.StatusNotFound)
	err := start(t.Context(), &rest.Config{Host: server.URL}, &flags{probeAddress: off}, namespaces{})
	require.ErrorIs(t, err, errNoCRD)
}

func freeAddress(t *testing.T) string {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}

func get(t *testing.T, address, path string) int {
	code := tryGet(t, address, path)
	require.NotZero(t, code)
	return code
}

// tryGet returns the status code; 0 without an answer.
func tryGet(t *testing.T, address, path string) int {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
