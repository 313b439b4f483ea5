// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/lease"
	"github.com/nodemaint/nodemaint/maintenance"
	"github.com/nodemaint/nodemaint/test/cluster"
)

// between stands between a client and the API server; it answers a request itself or, with nil, lets it pass.
type between func(*http.Request) *http.Response

type transport struct {
	next  http.RoundTripper
	meets between
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if answer := t.meets(r); answer != nil {
		answer.Request = r
		return answer, nil
	}
	return t.next.RoundTrip(r)
}

func answer(code int, header http.Header, body string) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/json")
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader(body)), ProtoMajor: 1, ProtoMinor: 1}
}

// embedded returns an engine whose requests meet f on their way, under a lease holder of its own.
func (e *env) embedded(t *testing.T, f between) *maintenance.Engine {
	t.Helper()
	config := e.Cluster.RESTConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{next, f} })
	c, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return maintenance.New(c, maintenance.Options{Lease: lease.NewManager(c, short(t), lease.Options{})})
}

// run makes the engine maintain the node until done, and passes each state on.
func runEngine(t *testing.T, engine *maintenance.Engine, node string, done func(maintenance.State) bool) maintenance.State {
	t.Helper()
	deadline := time.Now().Add(patience)
	for state, err := range engine.Run(t.Context(), node) {
		require.NoError(t, err)
		require.Less(t, time.Now(), deadline, "still %+v", state)
		if done(state) {
			return state
		}
	}
	require.Fail(t, "the maintenance ended")
	return maintenance.State{}
}

func succeededState(s maintenance.State) bool { return s.Phase == maintenance.Succeeded }

func TestAPodWhoseDaemonSetCannotBeReadIsPendingAndFailed(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.daemonSet(t, ns, "proxy", node, nil)
	e.pod(t, ns, "lone", node)
	var mu sync.Mutex
	broken := true
	engine := e.embedded(t, func(r *http.Request) *http.Response {
		mu.Lock()
		defer mu.Unlock()
		if broken && strings.Contains(r.URL.Path, "/daemonsets") {
			return answer(500, nil, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcd is on fire","code":500}`)
		}
		return nil
	})

	state := runEngine(t, engine, node, func(s maintenance.State) bool {
		require.NotEqual(t, maintenance.Succeeded, s.Phase)
		require.Less(t, s.Progress.Percent(), 100)
		return len(s.Report.Failed) == 1 && !s.Report.Done() && len(s.Report.Pending()) == 1
	})
	require.Contains(t, state.Error, "etcd is on fire")

	mu.Lock()
	broken = false
	mu.Unlock()
	runEngine(t, engine, node, succeededState)
	require.Len(t, e.podsOn(t, node), 1, "the DaemonSet's pod stays")
	_, err := engine.Stop(t.Context(), node)
	require.NoError(t, err)
}

// A webhook, or the API server itself, may ask to come back in ten seconds. Nobody else waits for that.
func TestRetryAfterHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.pod(t, ns, "asked-to-wait", node)
	e.pod(t, ns, "other", node)
	engine := e.embedded(t, func(r *http.Request) *http.Response {
		if strings.HasSuffix(r.URL.Path, "/pods/asked-to-wait/eviction") {
			return answer(429, http.Header{"Retry-After": {"10"}}, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","message":"come back later","details":{"retryAfterSeconds":10},"code":429}`)
		}
		return nil
	})
	began := time.Now()

	state := runEngine(t, engine, node, func(s maintenance.State) bool { return len(s.Report.Pending()) == 1 })

	require.Len(t, state.Report.Deferred, 1)
	require.Equal(t, "come back later", state.Report.Deferred[0].Reason)
	_, err := engine.Stop(t.Context(), node)
	require.NoError(t, err)
	require.Less(t, time.Since(began), 9*time.Second, "before the ten seconds were over")
}

// Between the pass and its eviction a pod is replaced by one of the same name: the call must neither evict
// the new one nor make the API server try for ten seconds.
func TestAPendingPodThatIsReplacedUnderItsEviction(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	edit := []func(*corev1.Pod){annotated(cluster.PodPhaseAnnotation, "Pending"), annotated(cluster.GoneAfterAnnotation, "never"), labelled(map[string]string{"app": "db"})}
	old := e.pod(t, ns, "db-0", node, edit...)
	b := e.budget(t, ns, "db", 0, 0)
	var once sync.Once
	var replaced *corev1.Pod
	engine := e.embedded(t, func(r *http.Request) *http.Response {
		if strings.HasSuffix(r.URL.Path, "/pods/db-0/eviction") {
			once.Do(func() {
				require.NoError(t, e.Delete(t.Context(), old, client.GracePeriodSeconds(0)))
				e.gone(t, old)
				replaced = e.pod(t, ns, "db-0", node, edit...)
			})
		}
		return nil
	})
	began := time.Now()

	state := runEngine(t, engine, node, func(s maintenance.State) bool {
		return replaced != nil && len(s.Report.Pending()) == 1 && s.Report.Pending()[0].UID == replaced.UID
	})

	require.Less(t, time.Since(began), 9*time.Second, "no ten seconds' stall")
	require.NotEqual(t, old.UID, state.Report.Pending()[0].UID)
	require.NoError(t, e.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	require.Empty(t, b.Status.DisruptedPods, "the budget was not charged")
	_, err := engine.Stop(t.Context(), node)
	require.NoError(t, err)
}
