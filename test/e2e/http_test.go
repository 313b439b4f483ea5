// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/deploy"
)

func port(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// plain is a client that does not look at certificates, and makes a connection for each request.
func plain() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, //nolint:gosec // a test of what is served, not by whom
	}}
}

func (e *env) token(t *testing.T, namespace, account string) string {
	t.Helper()
	r, err := e.Cluster.Client().CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return r.Status.Token
}

// getMetrics asks for the metrics and returns the status of the answer, and what it says.
func getMetrics(t *testing.T, port int, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+onLoopback(port)+"/metrics", nil)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := plain().Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}

// postToWebhook posts a body to a webhook, past the API server, and returns the status of the answer, and what it says.
func postToWebhook(t *testing.T, port int, body []byte) (int, []byte) {
	t.Helper()
	url := "https://" + onLoopback(port) + "/validate-nodemaintenance-medik8s-io-v1beta1-nodemaintenance"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := plain().Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, said
}

// askWebhook returns the review that a webhook answers with.
func askWebhook(t *testing.T, port int, body []byte) *admissionv1.AdmissionReview {
	t.Helper()
	_, said := postToWebhook(t, port, body)
	review := &admissionv1.AdmissionReview{}
	require.NoError(t, json.Unmarshal(said, review), string(said))
	return review
}

func reviewOf(t *testing.T, nm *v1beta1.NodeMaintenance) []byte {
	t.Helper()
	nm.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "NodeMaintenance"}
	object, err := json.Marshal(nm)
	require.NoError(t, err)
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request:  &admissionv1.AdmissionRequest{UID: "asked-by-hand", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: object}},
	})
	require.NoError(t, err)
	return body
}

// negotiated returns the protocol that a server picks out of HTTP/2 and HTTP/1.1.
func negotiated(t *testing.T, port int) string {
	t.Helper()
	c, err := tls.Dial("tcp", onLoopback(port), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}}) //nolint:gosec // as above
	if err != nil {
		return err.Error()
	}
	defer func() { _ = c.Close() }()
	return c.ConnectionState().NegotiatedProtocol
}

func TestWhatIsServedAndToWhom(t *testing.T) {
	t.Parallel()
	e := own(t, deploy.Options{})
	metrics := port(t)
	bind := fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", metrics)
	e.start(t, deploy.RunOptions{Flags: []string{bind}})
	node := e.node(t)
	e.eventually(t, "the metrics to be served", func() bool { return negotiated(t, metrics) == "http/1.1" })
	e.eventually(t, "the webhook to be believed", func() bool { return e.admits(t, node) })

	t.Run("metrics to those who may read them", func(t *testing.T) {
		code, _ := getMetrics(t, metrics, "")
		require.Equal(t, http.StatusUnauthorized, code, "nobody")
		code, _ = getMetrics(t, metrics, "nonsense")
		require.Equal(t, http.StatusUnauthorized, code, "a token of nobody's")
		code, _ = getMetrics(t, metrics, e.token(t, "default", "default"))
		require.Equal(t, http.StatusForbidden, code, "somebody without the right")
		code, _ = getMetrics(t, metrics, e.token(t, deploy.Namespace, deploy.ServiceAccount))
		require.Equal(t, http.StatusForbidden, code, "the operator itself")

		ns := e.namespace(t)
		e.bind(t, "node-maintenance-operator-metrics-reader", rbacv1.Subject{Kind: "ServiceAccount", Namespace: ns, Name: "default"})
		e.eventually(t, "the binding to be known", func() bool {
			_, err := e.Kubectl(t.Context(), nil, "auth", "can-i", "get", "/metrics", "--as=system:serviceaccount:"+ns+":default", "--quiet")
			return err == nil
		})
		code, text := getMetrics(t, metrics, e.token(t, ns, "default"))
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, text, `controller_runtime_reconcile_total{controller="nodemaintenance"`)
		require.Contains(t, text, "workqueue_depth")
	})

	t.Run("nothing without encryption, or with an old one", func(t *testing.T) {
		for name, port := range map[string]int{"metrics": metrics, "webhook": e.WebhookPort} {
			_, err := tls.Dial("tcp", onLoopback(port), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}) //nolint:gosec // it must be refused
			require.ErrorContains(t, err, "protocol version", name)
			res, err := plain().Get("http://" + onLoopback(port) + "/metrics")
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, http.StatusBadRequest, res.StatusCode, name)
		}
	})

	t.Run("no body that is too large", func(t *testing.T) {
		nm := maintenanceOf("large", node)
		nm.Spec.Reason = strings.Repeat("r", 3<<20)
		require.ErrorContains(t, e.dryCreate(t, nm), "too large", "the API server refuses more than 3 MB")

		for _, size := range []int{3 << 20, 8 << 20} {
			nm.Spec.Reason = strings.Repeat("r", size)
			code, said := postToWebhook(t, e.WebhookPort, reviewOf(t, nm))
			require.Equal(t, http.StatusRequestEntityTooLarge, code, string(said))
		}
		for _, nonsense := range []string{"", "{", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`} {
			review := askWebhook(t, e.WebhookPort, []byte(nonsense))
			require.False(t, review.Response.Allowed, nonsense)
		}
		review := askWebhook(t, e.WebhookPort, reviewOf(t, maintenanceOf("small", node)))
		require.True(t, review.Response.Allowed, "it is still there")
	})

	t.Run("HTTP/2 only when asked for", func(t *testing.T) {
		require.Equal(t, "http/1.1", negotiated(t, metrics))
		require.Equal(t, "http/1.1", negotiated(t, e.WebhookPort))
		require.NoError(t, e.operator.Stop(patience))
		require.NoError(t, e.run(t.Context(), deploy.RunOptions{Flags: []string{bind, "--enable-http2"}}))
		e.eventually(t, "the metrics to be served by HTTP/2", func() bool { return negotiated(t, metrics) == "h2" })
		require.Equal(t, "h2", negotiated(t, e.WebhookPort))
		require.True(t, e.admits(t, node))
	})
}
