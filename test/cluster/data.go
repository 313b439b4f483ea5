// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// copyData gives etcd what the cluster is to begin with.
func (c *Cluster) copyData() error {
	if c.options.Data == "" {
		return nil
	}
	err := os.Mkdir(c.layout.etcdData(), 0o700)
	if err == nil {
		err = os.CopyFS(c.layout.etcdData(), os.DirFS(c.options.Data))
	}
	if err != nil {
		return fmt.Errorf("copying the data to begin with: %w", err)
	}
	return nil
}

// dropLeases deletes the leases of the nodes that a cluster began with. They are held by a kwok that is gone: the one
// that comes would wait until they run out.
func (c *Cluster) dropLeases(ctx context.Context) error {
	if c.options.Data == "" {
		return nil
	}
	err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("deleting the leases of nodes that the cluster begins with: %w", err)
	}
	return nil
}
