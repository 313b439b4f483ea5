// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// byNode is the index of NodeMaintenances by the node that they are for, since each pass asks for those of its own.
const byNode = "spec.nodeName"

func nodeOf(o client.Object) []string {
	if nm, ok := o.(*v1beta1.NodeMaintenance); ok {
		return []string{nm.Spec.NodeName}
	}
	return nil
}

// index has a cache index its objects by node, once it is first asked for: by then the cache stands, and to
// index one that does not asks the API server, which may be away while an operator is put together.
type index struct {
	mu    sync.Mutex
	cache client.FieldIndexer // nil if it does so already
}

func (i *index) make(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cache == nil {
		return nil
	}
	if err := i.cache.IndexField(ctx, &v1beta1.NodeMaintenance{}, byNode, nodeOf); err != nil {
		return fmt.Errorf("indexing NodeMaintenances by node: %w", err)
	}
	i.cache = nil
	return nil
}
