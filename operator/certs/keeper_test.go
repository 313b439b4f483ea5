// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func replica(c client.Client) *keeper {
	return &keeper{
		reader: c, writer: c, serving: &Serving{}, names: names("ns"),
		secret: client.ObjectKey{Namespace: "ns", Name: SecretName},
		clock:  testingclock.NewFakePassiveClock(start),
	}
}

// settle reconciles as the watches would make it.
func settle(t *testing.T, k *keeper) {
	for range 5 {
		result, err := k.Reconcile(t.Context(), reconcile.Request{})
		require.NoError(t, err)
		if result.RequeueAfter > 0 {
			require.Equal(t, lookAgain, result.RequeueAfter)
			return
		}
	}
	require.Fail(t, "it does not settle")
}

// served returns the fingerprint of the certificate that is presented.
func served(t *testing.T, s *Serving) [sha256.Size]byte {
	var config tls.Config
	s.Use(&config)
	c, err := config.GetCertificate(nil)
	require.NoError(t, err)
	return sha256.Sum256(c.Certificate[0])
}

func secretIn(t *testing.T, c client.Client) *corev1.Secret {
	s := &corev1.Secret{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: SecretName}, s))
	return s
}

func trusted(t *testing.T, c client.Client) []byte {
	u := newConfiguration()
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: ConfigurationName}, u))
	hooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
	require.NoError(t, err)
	bundle, _, err := unstructured.NestedString(hooks[0].(map[string]any), "clientConfig", "caBundle")
	require.NoError(t, err)
	ca, err := base64.StdEncoding.DecodeString(bundle)
	require.NoError(t, err)
	return ca
}

func TestKeeper(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(configuration([]any{hook("")})).Build()
	first := replica(c)
	var none tls.Config
	first.serving.Use(&none)
	_, err := none.GetCertificate(nil)
	require.ErrorIs(t, err, errNone, "before there is a Secret no handshake succeeds")

	settle(t, first)
	made := secretIn(t, c)
	require.Equal(t, made.Data[caFile], trusted(t, c))

	second := replica(c)
	settle(t, second)
	require.Equal(t, made.ResourceVersion, secretIn(t, c).ResourceVersion, "a second replica changes nothing")
	require.Equal(t, served(t, first.serving), served(t, second.serving))

	later := testingclock.NewFakePassiveClock(start.Add(300 * day))
	first.clock, second.clock = later, later
	settle(t, second)
	settle(t, first)
	require.Equal(t, served(t, first.serving), served(t, second.serving), "both serve what one renewed")
	require.Equal(t, made.Data[caFile], secretIn(t, c).Data[caFile], "the authority is the same")

	require.NoError(t, c.Delete(t.Context(), secretIn(t, c)))
	settle(t, first)
	require.Equal(t, secretIn(t, c).Data[caFile], trusted(t, c), "a deleted Secret is made again")

	require.NoError(t, c.Update(t.Context(), withResourceVersion(t, c, configuration([]any{hook("b2xk")}))))
	settle(t, first)
	require.Equal(t, secretIn(t, c).Data[caFile], trusted(t, c), "the authority is put back")
}

func withResourceVersion(t *testing.T, c client.Client, u *unstructured.Unstructured) *unstructured.Unstructured {
	now := newConfiguration()
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: ConfigurationName}, now))
	u.SetResourceVersion(now.GetResourceVersion())
	return u
}

func TestKeeperWithoutConfiguration(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	k := replica(c)
	settle(t, k)
	require.NotEmpty(t, served(t, k.serving))
}

func TestKeeperWhenWritesFail(t *testing.T) {
	anyResource := schema.GroupResource{Resource: "things"}
	for _, tc := range []struct {
		reason  string
		err     error
		secret  *corev1.Secret
		wantErr string
	}{
		{
			reason: "another replica was first", err: apierrors.NewConflict(anyResource, "x", nil),
			secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: SecretName}},
		},
		{
			reason: "the right to write is missing", err: errors.New("forbidden"),
			secret:  &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: SecretName}},
			wantErr: `storing a new certificate in secret "ns/webhook-server-cert": forbidden`,
		},
		{
			reason: "the right to create is missing", err: errors.New("forbidden"),
			wantErr: `creating secret "ns/webhook-server-cert": forbidden`,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			b := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return tc.err },
				Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					return tc.err
				},
			})
			if tc.secret != nil {
				b = b.WithObjects(tc.secret)
			}
			_, err := replica(b.Build()).Reconcile(t.Context(), reconcile.Request{})
			if tc.wantErr != "" {
				require.EqualError(t, err, tc.wantErr)
				return
			}
			require.NoError(t, err)
		})
	}
}
