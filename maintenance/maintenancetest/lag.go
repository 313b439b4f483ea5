// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lag makes the server's own copy of a resource ("pods"; "*" is every resource) lag that many changes,
// of anything in the cluster, behind the truth, as that of an API server may. What the API lets such a copy
// answer is old: lists of resourceVersion 0, with which caches begin, and the events of watches. All other reads
// and all writes see the truth. A watch that asks for initial events is refused meanwhile, as by a server that
// knows none, and its reader begins with a list instead. 0 ends it.
func (c *Cluster) Lag(resource string, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lags[resource] = changes
	for w := range c.store.watchers {
		w.reach(c.sight(w.gvr))
	}
}

// lag is how many changes a resource lags behind.
func (c *Cluster) lag(gvr schema.GroupVersionResource) int {
	return max(c.lags[gvr.Resource], c.lags["*"])
}

// sight is the latest version that the copy of a resource has.
func (c *Cluster) sight(gvr schema.GroupVersionResource) uint64 {
	lag := uint64(c.lag(gvr))
	if lag > c.store.rv {
		return 0
	}
	return max(c.store.rv-lag, c.store.expired)
}

// versionFor returns the version that a list is answered from: the latest, or, if the reader does not mind,
// what the copy has, but nothing older than it has seen.
func (c *Cluster) versionFor(r *Request) (uint64, error) {
	asked := r.listOptions.ResourceVersion
	if asked == "" {
		return c.store.rv, nil
	}
	least, err := strconv.ParseUint(asked, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q", asked))
	}
	return min(max(least, c.sight(r.gvr())), c.store.rv), nil
}
