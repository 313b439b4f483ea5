// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// reviews is an API server that knows two tokens and one right, and counts what it is asked.
type reviews struct {
	away          bool // it answers, but cannot say
	tokens, right int
}

func (s *reviews) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || s.away {
		http.Error(w, "etcd is away", http.StatusServiceUnavailable)
		return
	}
	var answer any
	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		s.tokens++
		var review authenticationv1.TokenReview
		err = json.Unmarshal(body, &review)
		switch review.Spec.Token {
		case "scraper's", "stranger's":
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
				Username: review.Spec.Token, UID: "u", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}},
			}}
		case "silent": // not valid either, and no word why
		default: // as a real one says it
			review.Status.Error = "[invalid bearer token, token lookup failed]"
		}
		answer = review
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		s.right++
		var review authorizationv1.SubjectAccessReview
		err = json.Unmarshal(body, &review)
		is := review.Spec
		review.Status.Allowed = is.User == "scraper's" && is.UID == "u" && is.Groups[0] == "g" && is.Extra["k"][0] == "v" &&
			*is.NonResourceAttributes == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		answer = review
	}
	if err != nil || answer == nil {
		http.Error(w, fmt.Sprintf("asked for %s: %v", r.URL.Path, err), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// metricsBehind serves metrics to whom the API server lets in, and returns how to ask for them.
func metricsBehind(t *testing.T, host string) func(token string) int {
	provide := metricsOptions(&flags{}).FilterProvider
	filter, err := provide(&rest.Config{Host: host, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}, http.DefaultClient)
	require.NoError(t, err)
	handler, err := filter(testr.New(t), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "metrics")
	}))
	require.NoError(t, err)
	return func(token string) int {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		if token != "" {
			r.Header.Set("Authorization", token)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Equal(t, w.Code == http.StatusOK, w.Body.String() == "metrics", "the metrics are told to nobody else")
		return w.Code
	}
}

func TestMetricsToWhomTheyMayBeTold(t *testing.T) {
	for _, tc := range []struct {
		reason, token string
		code          int
	}{
		{"nobody", "", http.StatusUnauthorized},
		{"no token", "Bearer ", http.StatusUnauthorized},
		{"a password", "Basic c2NyYXBlcjpz", http.StatusUnauthorized},
		{"a token of nobody's", "Bearer nonsense", http.StatusUnauthorized},
		{"another one, about which nothing is said", "Bearer silent", http.StatusUnauthorized},
		{"somebody without the right", "Bearer stranger's", http.StatusForbidden},
		{"somebody who may", "Bearer scraper's", http.StatusOK},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			api := httptest.NewServer(&reviews{})
			t.Cleanup(api.Close)
			require.Equal(t, tc.code, metricsBehind(t, api.URL)(tc.token))
		})
	}
}

// TestMetricsWhileTheAPIServerIsAway: that nobody can tell is no verdict, and whoever was let in just now still is.
func TestMetricsWhileTheAPIServerIsAway(t *testing.T) {
	s := &reviews{}
	api := httptest.NewServer(s)
	t.Cleanup(api.Close)
	get := metricsBehind(t, api.URL)
	require.Equal(t, http.StatusOK, get("Bearer scraper's"))
	require.Equal(t, http.StatusUnauthorized, get("Bearer nonsense"))

	s.away = true
	require.Equal(t, http.StatusOK, get("Bearer scraper's"))
	require.Equal(t, http.StatusUnauthorized, get("Bearer nonsense"))
	require.Equal(t, http.StatusServiceUnavailable, get("Bearer stranger's"))

	s.away = false
	require.Equal(t, http.StatusForbidden, get("Bearer stranger's"), "an API server that was away is asked again")
	require.Equal(t, []int{3, 2}, []int{s.tokens, s.right}, "each token and each right once")

	require.Equal(t, http.StatusServiceUnavailable, metricsBehind(t, "http://127.0.0.1:1")("Bearer scraper's"), "no connection")
}

// TestMetricsWhileRightsCannotBeReviewed: a token may be known and its rights not.
func TestMetricsWhileRightsCannotBeReviewed(t *testing.T) {
	s := &reviews{}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apis/authorization.k8s.io/v1/subjectaccessreviews" {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(api.Close)
	require.Equal(t, http.StatusServiceUnavailable, metricsBehind(t, api.URL)("Bearer scraper's"))
}
