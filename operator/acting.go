// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// acts returns the name of the object that acts for node: among those neither failed nor being deleted the
// earliest, then the smaller name; empty if there is none.
func acts(all []v1beta1.NodeMaintenance, node string) string {
	var first *v1beta1.NodeMaintenance
	for i := range all {
		nm := &all[i]
		if nm.Spec.NodeName == node && nm.DeletionTimestamp == nil && nm.Status.Phase != v1beta1.MaintenanceFailed &&
			(first == nil || before(nm, first)) {
			first = nm
		}
	}
	if first == nil {
		return ""
	}
	return first.Name
}

func before(a, b *v1beta1.NodeMaintenance) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// acting returns which object acts for node, from the API server: the verdict decides who is touched.
func (r *Reconciler) acting(ctx context.Context, node string) (string, error) {
	all, err := list(ctx, r.live) // it has no such index
	if err != nil {
		return "", err
	}
	return acts(all, node), nil
}

// actingInstead returns the name of the object that acts in place of nm; empty if nm acts. The cache alone
// can say that nm has no rival; that it has one, only the API server.
func (r *Reconciler) actingInstead(ctx context.Context, nm *v1beta1.NodeMaintenance) (string, error) {
	all, err := r.cached(ctx, nm.Spec.NodeName)
	if err != nil || acts(all, nm.Spec.NodeName) == nm.Name {
		return "", err
	}
	name, err := r.acting(ctx, nm.Spec.NodeName)
	if err != nil || name == nm.Name {
		return "", err
	}
	return name, nil
}

// cached returns the objects for node that the cache has, to be read only: they are not copied.
func (r *Reconciler) cached(ctx context.Context, node string) ([]v1beta1.NodeMaintenance, error) {
	if err := r.index.make(ctx); err != nil {
		return nil, err
	}
	return list(ctx, r.client, client.MatchingFields{byNode: node}, client.UnsafeDisableDeepCopy)
}

func list(ctx context.Context, from client.Reader, which ...client.ListOption) ([]v1beta1.NodeMaintenance, error) {
	var all v1beta1.NodeMaintenanceList
	if err := from.List(ctx, &all, which...); err != nil {
		return nil, fmt.Errorf("listing NodeMaintenances: %w", err)
	}
	return all.Items, nil
}
