// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodemaint/nodemaint/test/deploy"
)

// Webhook returns how the webhook is configured.
func (s *Stage) Webhook(ctx context.Context) (*admissionv1.ValidatingWebhookConfiguration, error) {
	config := &admissionv1.ValidatingWebhookConfiguration{}
	return config, s.Get(ctx, types.NamespacedName{Name: deploy.WebhookConfig}, config)
}

// EditWebhook changes where the API server looks for the webhook, and whom it trusts there.
func (s *Stage) EditWebhook(ctx context.Context, edit func(*admissionv1.WebhookClientConfig)) error {
	return s.Until(ctx, "the webhook configuration to be written", func(ctx context.Context) error {
		config, err := s.Webhook(ctx)
		if err != nil {
			return err
		}
		edit(&config.Webhooks[0].ClientConfig)
		return s.Update(ctx, config)
	})
}
