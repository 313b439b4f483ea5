// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd/api"
)

// tokenLifetime is how long the token of a ServiceAccountKubeconfig is good.
const tokenLifetime = 24 * time.Hour

// ServiceAccountKubeconfig writes a kubeconfig with a real token, good for a day,
// of a service account that exists, and returns its path.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	seconds := int64(tokenLifetime.Seconds())
	token, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}},
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("getting a token of service account %s/%s: %w", namespace, name, err)
	}
	file := "sa_" + namespace + "_" + name
	user := "system:serviceaccount:" + namespace + ":" + name
	if err := c.layout.writeKubeconfig(file, user, c.ports, &api.AuthInfo{Token: token.Status.Token}); err != nil {
		return "", err
	}
	return c.layout.kubeconfig(file), nil
}
