// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/drain"
)

// Cordon makes n unschedulable, with kubectl's helper; it writes nothing if n is so already. n is the
// node as last read and is not changed. Errors: those of patching the node, with its name.
func (d *Drainer) Cordon(ctx context.Context, n *corev1.Node) error {
	return d.setSchedulable(ctx, n, false)
}

// Uncordon makes n schedulable, as Cordon does the reverse.
func (d *Drainer) Uncordon(ctx context.Context, n *corev1.Node) error {
	return d.setSchedulable(ctx, n, true)
}

func (d *Drainer) setSchedulable(ctx context.Context, n *corev1.Node, schedulable bool) error {
	helper := drain.NewCordonHelper(n.DeepCopy())
	if !helper.UpdateIfRequired(!schedulable) {
		return nil
	}
	if err := errors.Join(helper.PatchOrReplaceWithContext(ctx, d.client, false)); err != nil {
		return fmt.Errorf("setting node %q schedulable to %t: %w", n.Name, schedulable, err)
	}
	return nil
}
