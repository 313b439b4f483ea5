// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Held is a node whose lease is ours, run out or not.
type Held struct {
	// Node and NodeUID are the node's, as the lease names its owner: its own name has lost the case of the node's.
	Node    string
	NodeUID types.UID
	// UID is the lease's.
	UID types.UID
}

// Held returns the nodes whose leases are ours, by a read from the API server. Errors: what it answered.
func (m *Manager) Held(ctx context.Context) ([]Held, error) {
	all, err := m.leases().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the leases in namespace %q: %w", m.opts.Namespace, err)
	}
	var out []Held
	for i := range all.Items {
		l := &all.Items[i]
		for _, o := range l.OwnerReferences {
			if holderOf(l) == m.holder && o.Kind == "Node" && Name(o.Name) == l.Name {
				out = append(out, Held{Node: o.Name, NodeUID: o.UID, UID: l.UID})
			}
		}
	}
	return out, nil
}
