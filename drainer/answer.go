// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// kind sorts the API server's answers to an eviction.
type kind int

const (
	unasked    kind = iota // not posted yet
	accepted               // the pod goes, because we asked
	going                  // the pod goes, whoever asked
	gone                   // there is no such pod any more
	stale                  // a precondition failed: look again
	blocked                // a budget allows no disruption now
	ending                 // the pod's namespace is being deleted, and the pod with it
	throttled              // come back later
	serverFail             // 500: more than one budget, or a failure
	unanswered             // nothing certain is known: it may have taken effect
	brokenOff              // the same, since we broke the call off ourselves
	refused                // anything else: a webhook that denies, a right that is missing
)

// answer is one answer to an eviction.
type answer struct {
	kind  kind
	words string        // the server's
	wait  time.Duration // what a throttled call was asked to wait
}

// minWait is the shortest pause after an answer that asks to come back later.
const minWait = time.Second

// classify sorts the error of one eviction call. Sources: the API server's eviction handler answers
// 429 with the cause DisruptionBudget for a budget, and 500 if several select the pod; causes, not
// texts, tell them apart.
func classify(err error) answer {
	if err == nil {
		return answer{kind: accepted}
	}
	budget := apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause)
	a := answer{kind: refused, words: err.Error()}
	switch {
	case apierrors.IsNotFound(err):
		a.kind = gone
	case apierrors.IsConflict(err):
		a.kind = stale
	case budget && (apierrors.IsTooManyRequests(err) || apierrors.IsForbidden(err)):
		a.kind = blocked
	case apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		a.kind = ending
	case apierrors.IsTooManyRequests(err):
		a.kind, a.wait = throttled, minWait
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			a.wait = max(minWait, time.Duration(seconds)*time.Second)
		}
	case code(err) == http.StatusInternalServerError:
		a.kind = serverFail
	case code(err) == 0 || code(err) > http.StatusInternalServerError:
		a.kind = unanswered
	}
	return a
}

// code returns the HTTP status of err; 0 if the server did not answer.
func code(err error) int32 {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}
