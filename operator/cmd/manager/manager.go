// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/operator/certs"
)

const (
	leaderElectionID = "135b1886.medik8s.io"
	// gracefulShutdown is how long what is under way may take to come to rest, and endLimit how long that and
	// giving up the leadership may take together, for an end in under five seconds.
	gracefulShutdown = 4 * time.Second
	endLimit         = 4500 * time.Millisecond
	// patience is how long a cache may take to be filled: an API server that is away is waited for.
	patience = 365 * 24 * time.Hour
)

// newManager makes the manager. Its leadership is noted in l. The webhook's certificate comes from folder or, if
// that is empty, from serving.
func newManager(c *rest.Config, l *leading, f *flags, ns namespaces, folder string, serving *certs.Serving) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("making the scheme: %w", err)
	}
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("making the scheme: %w", err)
	}
	mgr, err := ctrl.NewManager(c, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cacheOptions(f, folder, ns.operator),
		Controller:                    config.Controller{CacheSyncTimeout: patience},
		HealthProbeBindAddress:        f.probeAddress,
		Metrics:                       metricsOptions(f),
		WebhookServer:                 webhookServer(f, folder, serving),
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              leaderElectionID,
		LeaderElectionNamespace:       ns.operator,
		LeaderElectionConfig:          l.elect(c),
		LeaseDuration:                 ptr.To(leaseDuration),
		RenewDeadline:                 ptr.To(renewDeadline),
		LeaderElectionReleaseOnCancel: true, // the program ends when the manager does
		GracefulShutdownTimeout:       ptr.To(gracefulShutdown),
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	return mgr, nil
}

// cacheOptions limit what is kept in memory: NodeMaintenances and, if the certificate is managed, what that
// needs of one name each. A read of anything else through the cache fails, so that no copy of all nodes, pods
// or leases comes about by chance.
func cacheOptions(f *flags, folder, namespace string) cache.Options {
	o := cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ReaderFailOnMissingInformer: true}
	if f.webhooks && folder == "" {
		o.ByObject = certs.Caches(namespace)
	}
	return o
}

func metricsOptions(f *flags) metricsserver.Options {
	return metricsserver.Options{
		BindAddress:    f.metricsAddress,
		SecureServing:  true,
		FilterProvider: readers,
		TLSOpts:        tlsOptions(f),
	}
}

// webhookServer takes the certificate from folder or, if that is empty, from serving.
func webhookServer(f *flags, folder string, serving *certs.Serving) webhook.Server {
	opts := tlsOptions(f)
	if folder == "" {
		opts = append(opts, serving.Use)
	}
	return webhook.NewServer(webhook.Options{Port: f.webhookPort, CertDir: folder, TLSOpts: opts})
}

// tlsOptions refuse old TLS, and HTTP/2 unless it was asked for: its streams can be reset at a server's cost.
func tlsOptions(f *flags) []func(*tls.Config) {
	return []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion = tls.VersionTLS12
		if !f.http2 {
			c.NextProtos = []string{"http/1.1"}
		}
	}}
}
