// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/drainer"
	"github.com/nodemaint/nodemaint/lease"
	"github.com/nodemaint/nodemaint/maintenance"
	"github.com/nodemaint/nodemaint/operator"
	"github.com/nodemaint/nodemaint/operator/certs"
)

// start runs the operator until ctx ends.
func start(ctx context.Context, c *rest.Config, f *flags, ns namespaces) error {
	err := ready(ctx, c, f.probeAddress)
	if errors.Is(err, context.Canceled) {
		return nil // told to end before it began
	}
	if err != nil {
		return err
	}
	mgr, err := assemble(c, f, ns)
	if err != nil {
		return err
	}
	if err := endSoon(ctx, mgr.Start); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// endSoon runs until run returns, but no longer than endLimit after the end of ctx. A manager gives up the
// leadership last, and if the API server hangs it waits for that longer than the kubelet may wait for us.
func endSoon(ctx context.Context, run func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	limit := time.NewTimer(endLimit)
	defer limit.Stop()
	select {
	case err := <-done:
		return err
	case <-limit.C:
		logr.FromContextOrDiscard(ctx).Info("did not come to rest in time; ending all the same", "limit", endLimit.String())
		return nil
	}
}

// ready returns when the cluster is there to be worked in, and answers the probes until then.
func ready(ctx context.Context, c *rest.Config, probeAddress string) error {
	ask, err := askFor(c)
	if err != nil {
		return err
	}
	probes, err := answerEarly(ctx, probeAddress)
	if err != nil {
		return err
	}
	return errors.Join(awaitAPI(ctx, ask, askAgain), probes.close())
}

// assemble puts the operator together.
func assemble(c *rest.Config, f *flags, ns namespaces) (ctrl.Manager, error) {
	folder, err := certs.Folder(f.webhookCertDir, os.TempDir())
	if err != nil {
		return nil, err
	}
	serving, l := &certs.Serving{}, &leading{}
	mgr, err := newManager(c, l, f, ns, folder, serving)
	if err != nil {
		return nil, err
	}
	if err := addChecks(mgr, f); err != nil {
		return nil, err
	}
	if f.webhooks {
		if err := operator.SetupWebhook(mgr); err != nil {
			return nil, err
		}
		if folder == "" {
			if err := certs.Setup(mgr, ns.operator, serving); err != nil {
				return nil, err
			}
		}
	}
	if f.leaderElect {
		c = l.guard(c)
	}
	itself := v1beta1.PodReference{Namespace: ns.operator, Name: os.Getenv(podNameVariable)}
	own, err := engineClient(c)
	if err != nil {
		return nil, err
	}
	leases := lease.NewManager(own, maintenance.DefaultHolder, lease.Options{Namespace: ns.leases})
	objects, err := client.New(c, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), Cache: &client.CacheOptions{Reader: mgr.GetCache()}})
	if err != nil {
		return nil, fmt.Errorf("making a client of NodeMaintenances: %w", err)
	}
	return mgr, operator.Setup(mgr, operator.SetupOptions{
		Engine: func(onTransition func(context.Context, maintenance.Transition) error) maintenance.Interface {
			return maintenance.New(own, maintenance.Options{
				Lease: leases, Drainer: drainer.New(own, drainer.Options{Last: only(itself)}), OnTransition: onTransition,
			})
		},
		Held: leases.Held, Client: objects, MaxConcurrentReconciles: f.maxConcurrentReconciles, Itself: itself,
	})
}

// engineClient makes the client that the engine reads nodes, pods and leases with: in the API server's own encoding,
// which costs both sides a fraction of what JSON does.
func engineClient(c *rest.Config) (kubernetes.Interface, error) {
	c = rest.CopyConfig(c)
	c.DisableCompression = true // what comes is small, and the buffers of a compressed watch are not: three watches a node
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client, nil
}
