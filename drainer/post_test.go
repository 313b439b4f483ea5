// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestRealClientDoesNotSleep talks to a server that asks to come back in ten minutes: client-go would sleep
// that long, the call may not.
func TestRealClientDoesNotSleep(t *testing.T) {
	for _, tt := range []struct {
		reason string
		o      Options
		method string
		path   string
	}{
		{"an eviction", Options{}, http.MethodPost, "/api/v1/namespaces/shop/pods/web-0/eviction"},
		{"a deletion", Options{DisableEviction: true}, http.MethodDelete, "/api/v1/namespaces/shop/pods/web-0"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			type request struct {
				method, path string
				body         map[string]any
			}
			got := make(chan request, 10)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body map[string]any
				_ = json.NewDecoder(r.Body).Decode(&body)
				got <- request{r.Method, r.URL.Path, body}
				w.Header().Set("Retry-After", "600")
				w.WriteHeader(http.StatusTooManyRequests)
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL}
			config.ContentType = "application/json"
			client, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			d := New(client, tt.o)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "u"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}

			a := d.evict(t.Context(), pod, time.Now(), collisions, false)

			require.Equal(t, throttled, a.kind, a.words)
			require.Equal(t, 10*time.Minute, a.wait)
			require.Len(t, got, 1, "asked once")
			r := <-got
			require.Equal(t, tt.method, r.method)
			require.Equal(t, tt.path, r.path)
			options := r.body
			if tt.method == http.MethodPost {
				require.Equal(t, policyv1.SchemeGroupVersion.String(), r.body["apiVersion"])
				options = r.body["deleteOptions"].(map[string]any)
			}
			require.Equal(t, map[string]any{"uid": "u"}, options["preconditions"])
		})
	}
}
