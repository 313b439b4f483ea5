// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var podsResource = corev1.Resource("pods")

// because adds a cause to a status.
func because(err *apierrors.StatusError, cause metav1.CauseType) error {
	if err.ErrStatus.Details == nil {
		err.ErrStatus.Details = &metav1.StatusDetails{}
	}
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause})
	return err
}

func status(code int32, words string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: words}}
}

func TestClassify(t *testing.T) {
	no := errors.New("no")
	for _, tt := range []struct {
		reason string
		err    error
		want   kind
		wait   time.Duration
	}{
		{"201", nil, accepted, 0},
		{"404", apierrors.NewNotFound(podsResource, "p"), gone, 0},
		{"409", apierrors.NewConflict(podsResource, "p", no), stale, 0},
		{"409 of a plain server", status(409, "no"), stale, 0},
		{"429 with the budget's cause", because(apierrors.NewTooManyRequests("no", 0), policyv1.DisruptionBudgetCause), blocked, 0},
		{"429 of a budget not looked at yet", because(apierrors.NewTooManyRequests("no", 10), policyv1.DisruptionBudgetCause), blocked, 0},
		{"403 with the budget's cause", because(apierrors.NewForbidden(podsResource, "p", no), policyv1.DisruptionBudgetCause), blocked, 0},
		{"403 of a namespace that goes", because(apierrors.NewForbidden(podsResource, "p", no), corev1.NamespaceTerminatingCause), ending, 0},
		{"403 without a cause", apierrors.NewForbidden(podsResource, "p", no), refused, 0},
		{"429 that names a time", apierrors.NewTooManyRequests("no", 10), throttled, 10 * time.Second},
		{"429 that names none", apierrors.NewTooManyRequests("no", 0), throttled, time.Second},
		{"429 of a plain server", status(429, "no"), throttled, time.Second},
		{"500", apierrors.NewInternalError(no), serverFail, 0},
		{"500 that names a time", apierrors.NewServerTimeout(podsResource, "create", 2), serverFail, 0},
		{"502", status(502, "bad gateway"), unanswered, 0},
		{"503", apierrors.NewServiceUnavailable("no"), unanswered, 0},
		{"504", apierrors.NewTimeoutError("no", 1), unanswered, 0},
		{"no answer in time", context.DeadlineExceeded, unanswered, 0},
		{"no connection", no, unanswered, 0},
		{"a webhook that denies", status(400, "admission webhook denied the request"), refused, 0},
		{"422", apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "p", nil), refused, 0},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			for _, err := range []error{tt.err, fmt.Errorf("wrapped: %w", tt.err)} {
				if tt.err == nil {
					err = nil
				}
				got := classify(err)
				require.Equal(t, tt.want, got.kind)
				require.Equal(t, tt.wait, got.wait)
				if err != nil {
					require.Equal(t, err.Error(), got.words)
				}
			}
		})
	}
}
