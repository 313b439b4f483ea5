// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Held is a node whose lease is ours, run out or not.
type Held struct {
	// Node is the node's name, as the lease names its owner: in the name of the lease all letters are small. NodeUID is the
	// owner's UID; empty if the lease has lost its owner.
	Node    string
	NodeUID types.UID
	// UID is the lease's.
	UID types.UID
}

// Held returns the nodes whose leases are ours, by a read from the API server. Errors: ErrNoHolder, else what it answered.
func (m *Manager) Held(ctx context.Context) ([]Held, error) {
	if m.holder == "" {
		return nil, ErrNoHolder
	}
	all, err := m.leases().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the leases in namespace %q: %w", m.opts.Namespace, err)
	}
	var out []Held
	for i := range all.Items {
		l := &all.Items[i]
		if node, ok := nodeOf(l); ok && holderOf(l) == m.holder {
			out = append(out, Held{Node: node.Name, NodeUID: node.UID, UID: l.UID})
		}
	}
	return out, nil
}

// nodeOf returns which node a lease is of: the owner that it is named after or, without one, what it is named after. It
// says whether it is a node's at all.
func nodeOf(l *coordinationv1.Lease) (metav1.OwnerReference, bool) {
	for _, o := range l.OwnerReferences {
		if o.Kind == "Node" && Name(o.Name) == l.Name {
			return o, true
		}
	}
	name, ok := strings.CutPrefix(l.Name, namePrefix)
	return metav1.OwnerReference{Name: name}, ok && name != ""
}
