// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A webhook on this machine is reached through a Service of type ExternalName, with
// a certificate for the Service's name.
func TestWebhookThroughExternalName(t *testing.T) {
	w := newWorld(t)
	a, err := newAuthority(time.Now())
	require.NoError(t, err)
	p := pki{t.TempDir()}
	require.NoError(t, a.issue(p, "hook", &x509.Certificate{DNSNames: []string{"hook." + w.ns + ".svc"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}))
	cert, err := tls.LoadX509KeyPair(p.cert("hook"), p.key("hook"))
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(refuse))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.StartTLS()
	defer server.Close()

	_, err = w.Client().CoreV1().Services(w.ns).Create(t.Context(), WebhookService(w.ns, "hook"), metav1.CreateOptions{})
	require.NoError(t, err)
	port := int32(server.Listener.Addr().(*net.TCPAddr).Port)
	path := "/refuse"
	none := admissionregistrationv1.SideEffectClassNone
	name := "refuse-" + w.ns
	_, err = w.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "refuse.nodemaint.test", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.ns}},
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					Service:  &admissionregistrationv1.ServiceReference{Namespace: w.ns, Name: "hook", Port: &port, Path: &path},
					CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}),
				},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
						Resources: []string{"secrets"}},
				}},
			}},
		}, metav1.CreateOptions{})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, w.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().
			Delete(t.Context(), name, metav1.DeleteOptions{}))
	}()

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "s-"}}
	w.eventually("the webhook is asked", func() bool {
		_, err := w.Client().CoreV1().Secrets(w.ns).Create(t.Context(), secret, metav1.CreateOptions{})
		if apierrors.IsInternalError(err) {
			t.Fatal(err) // reached, but not as it should be
		}
		return apierrors.IsForbidden(err)
	})
}

// refuse answers every admission review with no.
func refuse(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID,
		Result: &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no"}}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}
