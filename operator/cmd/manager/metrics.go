// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	knownFor   = time.Minute      // how long what a token is stays believed
	allowedFor = 5 * time.Minute  // how long a right does
	deniedFor  = 30 * time.Second // and the lack of one
	reviewIn   = 10 * time.Second // how long an API server may take to review a token
)

// errNotReviewed tells a token that nobody could look at from one that is not valid.
var errNotReviewed = errors.New("reviewing a token")

// readers lets those at the metrics who have a valid token (else 401) and the right to read them (else 403), as the
// API server says; 503 if it does not say. The filter of controller-runtime answers 500 to a token that is not
// valid: for the authenticator it uses that is the same as an API server that does not answer.
func readers(c *rest.Config, h *http.Client) (metricsserver.Filter, error) {
	client, err := kubernetes.NewForConfigAndClient(c, h)
	if err != nil {
		return nil, fmt.Errorf("making a client for reviews: %w", err)
	}
	rights, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             allowedFor,
		DenyCacheTTL:              deniedFor,
		WebhookRetryBackoff:       &wait.Backoff{Steps: 1}, // whoever scrapes asks again
	}.New()
	if err != nil {
		return nil, fmt.Errorf("making an authorizer: %w", err)
	}
	tokens := bearertoken.New(cache.New(reviewer(client), false, knownFor, knownFor))
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if code, err := admit(r, tokens, rights); err != nil {
				log.Error(err, "could not tell who may read the metrics")
				http.Error(w, http.StatusText(code), code)
			} else if code != http.StatusOK {
				http.Error(w, http.StatusText(code), code)
			} else {
				next.ServeHTTP(w, r)
			}
		}), nil
	}, nil
}

// admit returns the status for a request; an error only if the API server could not be asked.
func admit(r *http.Request, tokens authenticator.Request, rights authorizer.Authorizer) (int, error) {
	who, ok, err := tokens.AuthenticateRequest(r)
	if errors.Is(err, errNotReviewed) {
		return http.StatusServiceUnavailable, err
	}
	if !ok { // an error besides says no more than that the token is not valid
		return http.StatusUnauthorized, nil
	}
	decision, _, err := rights.Authorize(r.Context(), authorizer.AttributesRecord{
		User: who.User, Verb: strings.ToLower(r.Method), Path: r.URL.Path,
	})
	if err != nil {
		return http.StatusServiceUnavailable, fmt.Errorf("reviewing the rights of %q: %w", who.User.GetName(), err)
	}
	if decision != authorizer.DecisionAllow {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

// reviewer asks the API server what a token is. That one is not valid is no error.
func reviewer(client kubernetes.Interface) authenticator.TokenFunc {
	return func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		ctx, cancel := context.WithTimeout(ctx, reviewIn)
		defer cancel()
		review, err := client.AuthenticationV1().TokenReviews().Create(ctx,
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		if err != nil {
			return nil, false, fmt.Errorf("%w: %w", errNotReviewed, err)
		}
		if !review.Status.Authenticated {
			return nil, false, nil
		}
		is := review.Status.User
		extra := make(map[string][]string, len(is.Extra))
		for k, v := range is.Extra {
			extra[k] = v
		}
		return &authenticator.Response{User: &user.DefaultInfo{Name: is.Username, UID: is.UID, Groups: is.Groups, Extra: extra}}, true, nil
	}
}
