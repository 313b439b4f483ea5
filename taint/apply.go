// SPDX-License-Identifier: Apache-2.0

package taint

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// edit is one of With and Without.
type edit func([]corev1.Taint, ...corev1.Taint) ([]corev1.Taint, bool)

// Add puts the taints t on the node, as With does. Errors: those of reading and patching the node,
// with its name; a conflict is tried again and returned only when it does not end.
func Add(ctx context.Context, c kubernetes.Interface, node string, t ...corev1.Taint) error {
	return apply(ctx, c, node, With, t)
}

// Remove takes the taints t off the node, as Without does. Errors as those of Add.
func Remove(ctx context.Context, c kubernetes.Interface, node string, t ...corev1.Taint) error {
	return apply(ctx, c, node, Without, t)
}

// collisions bounds how often a write that collides with another writer's is tried anew: a node under
// change has several writers, and each collision costs only the time of a read.
var collisions = wait.Backoff{Steps: 12, Duration: 5 * time.Millisecond, Factor: 1.3, Jitter: 0.5}

func apply(ctx context.Context, c kubernetes.Interface, node string, change edit, t []corev1.Taint) error {
	return retry.RetryOnConflict(collisions, func() error {
		n, err := c.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("getting node %q to change its taints: %w", node, err)
		}
		taints, changed := change(n.Spec.Taints, t...)
		if !changed {
			return nil
		}
		body, err := patch(n.ResourceVersion, taints)
		if err != nil {
			return err
		}
		if _, err := c.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("patching taints of node %q: %w", node, err)
		}
		return nil
	})
}

// patch returns a JSON merge patch that sets spec.taints to taints, valid only for a node that is
// still at resourceVersion: the API server answers 409 Conflict otherwise.
func patch(resourceVersion string, taints []corev1.Taint) ([]byte, error) {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"spec":     map[string]any{"taints": taints},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a patch of taints: %w", err)
	}
	return body, nil
}
