// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Times of the leader election.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
)

// leading keeps a replica from writing once its leadership may be another's. The election alone gives up when it
// has not renewed for renewDeadline of its own time: a process that was frozen counts that from its waking on, and
// would act beside the next leader until then.
type leading struct {
	mu      sync.Mutex
	renewed time.Time // when the last request was sent that made us leader, or kept us so
}

// errNotLeading is why a write was not sent.
var errNotLeading = errors.New("not sent: the leadership was not renewed in time, so another may lead by now")

// elect returns c for the election, and notes when the leadership is renewed through it, or given up.
func (l *leading) elect(c *rest.Config) *rest.Config {
	c = wrapped(c, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if !writes(r) || !strings.Contains(r.URL.Path, "/leases") {
			return next.RoundTrip(r)
		}
		renewed := time.Now() // the leadership counts from before the request
		if !claims(r) {
			if !l.lasts(renewed) { // the election gives up what it finds, also if that is the next leader's by now
				return nil, notSent(r)
			}
			renewed = time.Time{}
			l.note(renewed) // from before the request, too
		}
		answer, err := next.RoundTrip(r)
		if err == nil && answer.StatusCode < http.StatusMultipleChoices {
			l.note(renewed)
		}
		return answer, err
	})
	c.ContentType = runtime.ContentTypeJSON // which claims reads
	return c
}

// claims says whether a write of a lease names a holder; one that names none gives the lease up.
func claims(r *http.Request) bool {
	if r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	defer func() { _ = body.Close() }()
	var lease struct {
		Spec struct{ HolderIdentity string }
	}
	return json.NewDecoder(body).Decode(&lease) == nil && lease.Spec.HolderIdentity != ""
}

func (l *leading) note(renewed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = renewed
}

// guard returns c for what only the leader may do: with another leader possible it sends no write.
func (l *leading) guard(c *rest.Config) *rest.Config {
	return wrapped(c, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if writes(r) && !l.lasts(time.Now()) {
			return nil, notSent(r)
		}
		return next.RoundTrip(r)
	})
}

func notSent(r *http.Request) error {
	if r.Body != nil {
		_ = r.Body.Close() // as a RoundTripper must
	}
	return errNotLeading
}

// lasts says whether nobody else can lead at now.
func (l *leading) lasts(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero() && elapsed(l.renewed, now) < renewDeadline
}

// elapsed is how long ago from was at to, by the clock that counts longer: the steady one stands still with a
// machine that is suspended, the other one may be set.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

func writes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

func wrapped(c *rest.Config, send func(http.RoundTripper, *http.Request) (*http.Response, error)) *rest.Config {
	c = rest.CopyConfig(c)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return send(next, r) })
	})
	return c
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
