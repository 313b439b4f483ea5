// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// apiServer answers discovery with each answer in turn, then for ever with the last. No answer is a
// connection that breaks.
func apiServer(t *testing.T, answers ...any) (*httptest.Server, *atomic.Int32) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/nodemaintenance.medik8s.io/v1beta1" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		n := int(asked.Add(1))
		switch a := answers[min(n, len(answers))-1].(type) {
		case nil:
			panic(http.ErrAbortHandler)
		case int:
			w.WriteHeader(a)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(a)
		}
	}))
	t.Cleanup(s.Close)
	return s, &asked
}

func listOf(names ...string) *metav1.APIResourceList {
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: "nodemaintenance.medik8s.io/v1beta1",
	}
	for _, n := range names {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: n})
	}
	return list
}

func TestAwaitAPI(t *testing.T) {
	served := listOf("nodemaintenances", "nodemaintenances/status")
	for _, tc := range []struct {
		reason  string
		answers []any
		asked   int32
		want    error
	}{
		{reason: "it serves them", answers: []any{served}, asked: 1},
		{reason: "it answers that there is no such group", answers: []any{http.StatusNotFound}, asked: 1, want: errNoCRD},
		{reason: "it serves something else in that group", answers: []any{listOf("others")}, asked: 1, want: errNoCRD},
		{reason: "it breaks, refuses, is not ready, and then serves them", answers: []any{nil, http.StatusForbidden, http.StatusInternalServerError, served}, asked: 4},
		{reason: "it is not ready and then does not know them", answers: []any{http.StatusUnauthorized, http.StatusNotFound}, asked: 2, want: errNoCRD},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			server, asked := apiServer(t, tc.answers...)
			ask, err := askFor(&rest.Config{Host: server.URL})
			require.NoError(t, err)
			require.ErrorIs(t, awaitAPI(t.Context(), ask, time.Millisecond), tc.want)
			require.Equal(t, tc.asked, asked.Load())
		})
	}
	require.ErrorContains(t, errNoCRD, "kubectl apply -k operator/config/crd")
}

func TestAwaitAPIEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err := awaitAPI(ctx, func(context.Context, string) (*metav1.APIResourceList, error) {
		if asked++; asked == 3 {
			cancel()
		}
		return nil, errors.New("away")
	}, time.Millisecond)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 3, asked)
}
