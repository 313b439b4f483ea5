// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/test/deploy"
	"github.com/nodemaint/nodemaint/test/faults/kit"
)

// webhookDown lets nobody answer where the API server asks for the webhook, while the operator works on.
type webhookDown struct{}

func (webhookDown) name() string  { return "webhook" }
func (webhookDown) title() string { return "the webhook is down" }

func (f webhookDown) run(ctx context.Context, s *stage) (string, error) {
	nodes, err := s.AddNodes(ctx, f.name(), 9, 5)
	if err != nil {
		return "", err
	}
	old, fresh := nodes[:6], nodes[6:]
	for _, n := range old {
		if err := errors.Join(s.Forbid(ctx, n), s.Maintain(ctx, n)); err != nil {
			return "", err
		}
	}
	nowhere, err := deploy.FreePort()
	if err != nil {
		return "", err
	}
	if err := ask(ctx, s, nowhere); err != nil {
		return "", err
	}
	err = s.Until(ctx, "creates to be refused", func(ctx context.Context) error {
		if s.Create(ctx, kit.MaintenanceOf(fresh[0].Name), client.DryRunAll) == nil {
			return errAdmitted
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if err := f.goOn(ctx, s, old); err != nil {
		return "", fmt.Errorf("with the webhook down: %w", err)
	}
	if s.Create(ctx, kit.MaintenanceOf(fresh[0].Name), client.DryRunAll) == nil {
		return "", errAdmitted // then it was not down
	}
	if err := ask(ctx, s, s.WebhookPort); err != nil {
		return "", err
	}
	for _, n := range fresh {
		if err := s.Maintain(ctx, n); err != nil {
			return "", err
		}
	}
	return "maintenances that had begun go on, and end", nil
}

var errAdmitted = errors.New("an object is admitted without the webhook")

// goOn sees what had begun through: finalizers and status need no webhook.
func (webhookDown) goOn(ctx context.Context, s *stage, nodes []kit.Node) error {
	for _, n := range nodes {
		if err := errors.Join(s.Allow(ctx, n), s.Await(ctx, n, "to succeed", kit.Succeeded)); err != nil {
			return err
		}
	}
	for _, n := range nodes[:len(nodes)/2] {
		if err := errors.Join(s.GiveBack(ctx, n), s.Gone(ctx, n)); err != nil {
			return err
		}
	}
	return nil
}

// ask makes the API server ask for the webhook at that port of this machine.
func ask(ctx context.Context, s *stage, port int) error {
	return s.EditWebhook(ctx, func(c *admissionv1.WebhookClientConfig) { c.Service.Port = new(int32(port)) })
}

// trust makes the API server trust that authority, if nobody corrects it.
func trust(ctx context.Context, s *stage, authority []byte) error {
	return s.EditWebhook(ctx, func(c *admissionv1.WebhookClientConfig) { c.CABundle = authority })
}
