// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"encoding/json"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/lease"
	"github.com/nodemaint/nodemaint/maintenance"
)

// nodeLeases is the namespace in which kubelets keep their leases, which claim nothing.
const nodeLeases = corev1.NamespaceNodeLease

// OneHolder holds that nobody shares a node: one lease claims it, and its record, if any, names the same holder.
func OneHolder(s Snapshot) []Breach {
	r := rule{name: "one holder"}
	holders := map[string]string{}
	for _, l := range s.Leases {
		n := claimed(l)
		if n == "" {
			continue
		}
		holder := ""
		if l.Spec.HolderIdentity != nil {
			holder = *l.Spec.HolderIdentity
		}
		if other, ok := holders[n]; ok {
			r.broken(n, "two leases claim it, of %q and of %q", other, holder)
		}
		holders[n] = holder
	}
	for _, n := range s.Nodes {
		text, recorded := n.Annotations[maintenance.RecordAnnotation]
		holder, leased := holders[n.Name]
		if !recorded || !leased {
			continue
		}
		var record struct{ Holder string }
		if err := json.Unmarshal([]byte(text), &record); err != nil || record.Holder != holder {
			r.broken(n.Name, "its lease is of %q, its record is %s", holder, text)
		}
	}
	return r.out
}

// NoLeaseLeft holds that every lease of ours has a NodeMaintenance.
func NoLeaseLeft(s Snapshot) []Breach {
	r := rule{name: "no lease left"}
	maintained := s.maintained()
	for _, l := range s.Leases {
		if ours(l) && len(maintained[claimed(l)]) == 0 {
			r.broken(l.Namespace+"/"+l.Name, "nothing is under maintenance there")
		}
	}
	return r.out
}

// claimed returns the node that a lease is for; empty if it is for none.
func claimed(l coordinationv1.Lease) string {
	n, ok := strings.CutPrefix(l.Name, lease.Name(""))
	if !ok || l.Namespace == nodeLeases {
		return ""
	}
	return n
}

func ours(l coordinationv1.Lease) bool {
	return claimed(l) != "" && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity == ourHolder
}

func ownedBy(l coordinationv1.Lease, n *corev1.Node) bool {
	return len(l.OwnerReferences) == 1 && l.OwnerReferences[0].UID == n.UID
}
