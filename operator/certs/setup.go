// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// The names of what is managed; the manifests and the rights have the same.
const (
	// SecretName is the Secret, in the operator's namespace, that holds the certificate.
	SecretName = "webhook-server-cert"
	// ServiceName is the Service, in the operator's namespace, through which the webhook is reached.
	ServiceName = "node-maintenance-operator-webhook-service"
	// ConfigurationName is the ValidatingWebhookConfiguration that gets the authority.
	ConfigurationName = "node-maintenance-operator-validating-webhook-configuration"
)

// Caches limits what a manager's cache holds to the one Secret and the one webhook configuration.
func Caches(namespace string) map[client.Object]cache.ByObject {
	byName := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}:   {Namespaces: map[string]cache.Config{namespace: {FieldSelector: byName(SecretName)}}},
		newConfiguration(): {Field: byName(ConfigurationName)},
	}
}

// Setup manages the certificate of the webhook in namespace and presents it through serving. The cache of
// the manager must be limited by Caches. Every replica does this, not only the leader, because every one
// serves.
func Setup(mgr ctrl.Manager, namespace string, serving *Serving) error {
	k := &keeper{
		reader: mgr.GetCache(), writer: mgr.GetClient(), serving: serving, clock: clock.RealClock{},
		secret: client.ObjectKey{Namespace: namespace, Name: SecretName},
		names:  names(namespace),
	}
	c, err := controller.New("webhook-certificate", mgr, controller.Options{
		Reconciler: k, NeedLeaderElection: ptr.To(false),
	})
	if err != nil {
		return fmt.Errorf("making the controller of the webhook's certificate: %w", err)
	}
	only := reconcile.Request{NamespacedName: k.secret}
	for _, s := range []source.Source{
		source.Kind(mgr.GetCache(), &corev1.Secret{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(context.Context, *corev1.Secret) []reconcile.Request { return []reconcile.Request{only} })),
		source.Kind(mgr.GetCache(), newConfiguration(), handler.TypedEnqueueRequestsFromMapFunc(
			func(context.Context, *unstructured.Unstructured) []reconcile.Request {
				return []reconcile.Request{only}
			})),
		// The Secret may be missing, and the configuration too: then nothing else would make the first look.
		source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			q.Add(only)
			return nil
		}),
	} {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watching for the webhook's certificate: %w", err)
		}
	}
	return nil
}

// names are what the certificate is for: the Service, and the own machine, for a webhook that is not
// reached through a cluster's network. The first becomes the common name, which must not be over 64 characters.
func names(namespace string) []string {
	return []string{ServiceName, ServiceName + "." + namespace + ".svc", "localhost"}
}
