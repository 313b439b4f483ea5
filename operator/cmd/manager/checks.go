// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// addChecks says when the program is alive and when it is ready: its copies of the cluster are filled and
// its webhook answers. A replica that is not elected is ready too; it serves the webhook.
func addChecks(mgr ctrl.Manager, f *flags) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("cache", filled(mgr.GetCache().WaitForCacheSync)); err != nil {
		return fmt.Errorf("adding the readiness check of the cache: %w", err)
	}
	if !f.webhooks {
		return nil
	}
	if err := mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return fmt.Errorf("adding the readiness check of the webhook: %w", err)
	}
	return nil
}

// filled asks wait, for a moment, whether the cache is filled.
func filled(wait func(context.Context) bool) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
		defer cancel()
		if !wait(ctx) {
			return errors.New("the cache is not filled yet")
		}
		return nil
	}
}
