// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WebhookService returns a Service that leads the API server to this machine. Let
// a webhook configuration name it and give the webhook's real port:
//
//	clientConfig: {service: {namespace: …, name: …, port: 34567, path: /…}, caBundle: …}
//
// For a Service of type ExternalName the API server takes the host from the
// Service and the port from the configuration, and asks for a certificate of
// <name>.<namespace>.svc. That is so only while --enable-aggregator-routing is off,
// its default: with it, the API server wants endpoints and refuses ExternalName.
func WebhookService(namespace, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
}
