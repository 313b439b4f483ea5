// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// early answers the probes before there is a manager to do it: alive, not ready.
type early struct {
	server *http.Server
	done   chan error
}

// answerEarly listens at address; with off it does nothing.
func answerEarly(ctx context.Context, address string) (*early, error) {
	if address == off {
		return &early{}, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for health probes: %w", err)
	}
	e := &early{server: &http.Server{Handler: earlyHandler(), ReadHeaderTimeout: time.Second}, done: make(chan error, 1)}
	go func() { e.done <- e.server.Serve(l) }()
	return e, nil
}

// close frees the address for the manager.
func (e *early) close() error {
	if e.server == nil {
		return nil
	}
	if err := e.server.Close(); err != nil {
		return fmt.Errorf("closing the early health probes: %w", err)
	}
	if err := <-e.done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the early health probes: %w", err)
	}
	return nil
}

func earlyHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the API server has not answered yet", http.StatusServiceUnavailable)
	})
	return mux
}
