// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// TestWebhookRefusesALargeBody asks over HTTP, as the API server does, what SetupWebhook registered.
func TestWebhookRefusesALargeBody(t *testing.T) {
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme: webhookScheme(t), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	require.NoError(t, err)
	require.NoError(t, SetupWebhook(mgr))
	server := httptest.NewServer(mgr.GetWebhookServer().WebhookMux())
	t.Cleanup(server.Close)

	for _, tc := range []struct {
		reason  string
		size    int
		chunked bool
		code    int
	}{
		{reason: "an ordinary request", size: 1000, code: http.StatusOK},
		{reason: "an ordinary request that does not tell its length", size: 1000, chunked: true, code: http.StatusOK},
		{reason: "as large as may be", size: 3 << 20, code: http.StatusOK},
		{reason: "a byte too much", size: 3<<20 + 1, code: http.StatusRequestEntityTooLarge},
		{reason: "too large, and does not tell its length", size: 3<<20 + 1, chunked: true, code: http.StatusRequestEntityTooLarge},
		{reason: "far too large", size: 16 << 20, code: http.StatusRequestEntityTooLarge},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var body io.Reader = strings.NewReader(reviewOfSize(t, tc.size))
			if tc.chunked {
				body = io.MultiReader(body) // of which the client knows no length
			}
			res, err := http.Post(server.URL+WebhookPath, "application/json", body)
			require.NoError(t, err)
			defer func() { require.NoError(t, res.Body.Close()) }()
			said, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.Equal(t, tc.code, res.StatusCode, string(said))
			if tc.code != http.StatusOK {
				require.Equal(t, "the request is larger than 3145728 bytes\n", string(said))
				return
			}
			var review admissionv1.AdmissionReview
			require.NoError(t, json.Unmarshal(said, &review))
			require.True(t, review.Response.Allowed, "%v", review.Response.Result)
		})
	}
}

// reviewOfSize is an update that is allowed, since it names the same node, in size bytes.
func reviewOfSize(t *testing.T, size int) string {
	nm := objectFor("a", "n1")
	req := request(t, nm, nm)
	b, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request:  &req.AdmissionRequest,
	})
	require.NoError(t, err)
	return string(b) + strings.Repeat(" ", size-len(b))
}
