// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// PartError says which part of a cluster failed, and shows the end of its log.
type PartError struct {
	Component Component
	Log       string // the log file
	Tail      string // its last lines
	Err       error
}

// Error names the part, its log file and the log's last lines.
func (e *PartError) Error() string {
	return fmt.Sprintf("%s: %v\nlog: %s, its last lines:\n%s", e.Component, e.Err, e.Log, e.Tail)
}

// Unwrap returns what happened to the part.
func (e *PartError) Unwrap() error { return e.Err }

func partError(p *process, err error) *PartError {
	return &PartError{Component: p.component, Log: p.log, Tail: tail(p.log, 15), Err: err}
}

// portTaken reports whether a part died because another process had its port.
func portTaken(err error) bool {
	part, ok := errors.AsType[*PartError](err)
	return ok && strings.Contains(part.Tail, "address already in use")
}

// healthClient asks components how they are, as the administrator.
type healthClient struct{ http *http.Client }

func newHealthClient(p pki) (*healthClient, error) {
	ca, err := os.ReadFile(p.ca())
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's authority: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	cert, err := tls.LoadX509KeyPair(p.cert(adminCert), p.key(adminCert))
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's certificate: %w", err)
	}
	return &healthClient{&http.Client{
		Timeout: 2 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}},
			// A connection kept open would outlive a component that is restarted.
			DisableKeepAlives: true,
		},
	}}, nil
}

// check returns nil if the component behind url is well.
func (h *healthClient) check(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	res, err := h.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: %s: %s", url, res.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

// poll is how often a start looks whether a part is ready.
const poll = 25 * time.Millisecond

// await calls check until it succeeds. It gives up when ctx ends or p exits, with
// an error that names the part.
func await(ctx context.Context, p *process, check func(context.Context) error) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return partError(p, fmt.Errorf("ended before it was ready: %w", exitError(p.err)))
		case <-ctx.Done():
			return partError(p, fmt.Errorf("not ready: %w: %w", context.Cause(ctx), err))
		case <-ticker.C:
		}
	}
}

// errExitedZero stands for the error that a process ending by itself with status 0 has not.
var errExitedZero = errors.New("exit status 0")

func exitError(err error) error {
	if err == nil {
		return errExitedZero
	}
	return err
}
