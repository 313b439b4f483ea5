// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cordon makes n unschedulable, as kubectl's cordon does; it writes nothing if n is so already. n is the
// node as last read and is not changed. Errors: those of patching the node, with its name, and one that
// apierrors.IsInvalid finds if another node has taken its name.
func (d *Drainer) Cordon(ctx context.Context, n *corev1.Node) error {
	return d.setUnschedulable(ctx, n, true)
}

// Uncordon makes n schedulable, as Cordon does the reverse.
func (d *Drainer) Uncordon(ctx context.Context, n *corev1.Node) error {
	return d.setUnschedulable(ctx, n, false)
}

// setUnschedulable names the UID in its patch, which kubectl's own helper does not: a node that was replaced
// since it was read is another machine, and nobody would undo what is done to it.
func (d *Drainer) setUnschedulable(ctx context.Context, n *corev1.Node, value bool) error {
	if n.Spec.Unschedulable == value {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": n.UID}, "spec": map[string]any{"unschedulable": value},
	})
	if err == nil {
		_, err = d.client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("setting node %q schedulable to %t: %w", n.Name, !value, err)
	}
	return nil
}
