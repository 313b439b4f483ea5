// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/nodemaint/nodemaint/internal/linger"
)

// change is what one write does to a node; nil parts stay as they are.
type change struct {
	annotations   map[string]*string // nil values are removed
	labels        map[string]*string
	taints        *[]corev1.Taint
	unschedulable *bool
}

func (c change) empty() bool {
	return len(c.annotations) == 0 && len(c.labels) == 0 && c.taints == nil && c.unschedulable == nil
}

// patch returns c as a JSON merge patch for a node that is still at that resourceVersion.
func (c change) patch(resourceVersion string) ([]byte, error) {
	meta := map[string]any{"resourceVersion": resourceVersion}
	if len(c.annotations) > 0 {
		meta["annotations"] = c.annotations
	}
	if len(c.labels) > 0 {
		meta["labels"] = c.labels
	}
	spec := map[string]any{}
	if c.taints != nil {
		if spec["taints"] = *c.taints; len(*c.taints) == 0 {
			spec["taints"] = nil // as the field is on a node that never had one
		}
	}
	if c.unschedulable != nil {
		if spec["unschedulable"] = *c.unschedulable; !*c.unschedulable {
			spec["unschedulable"] = nil // as the field is on a node that was never cordoned
		}
	}
	body := map[string]any{"metadata": meta}
	if len(spec) > 0 {
		body["spec"] = spec
	}
	return json.Marshal(body)
}

// collisions bounds how often a write that collides with another writer's is decided anew.
var collisions = wait.Backoff{Steps: 20, Duration: 5 * time.Millisecond, Factor: 1.3, Jitter: 0.5, Cap: 200 * time.Millisecond}

// edit writes what decide says about n, and decides anew on the node as it is then when another writer
// was faster. It returns the node as written.
func (e *Engine) edit(ctx context.Context, n *corev1.Node, doing string, decide func(*corev1.Node) (change, error)) (*corev1.Node, error) {
	fresh := true
	err := retry.RetryOnConflict(collisions, func() error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if !fresh {
			now, err := e.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("getting node %q: %w", n.Name, err)
			}
			if now.UID != n.UID { // what was decided was for another machine
				return fmt.Errorf("%s node %q: it was deleted meanwhile, and one of the same name created", doing, n.Name)
			}
			n = now
		}
		fresh = false
		c, err := decide(n)
		if err != nil || c.empty() {
			return err
		}
		body, err := c.patch(n.ResourceVersion)
		if err != nil {
			return err
		}
		write, done := linger.Write(ctx)
		defer done()
		out, err := e.client.CoreV1().Nodes().Patch(write, n.Name, types.MergePatchType, body, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("%s node %q: %w", doing, n.Name, err)
		}
		n = out
		return nil
	})
	return n, err
}
