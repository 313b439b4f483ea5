// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// Read returns what the cluster holds, without its events. All lists are of one version, so that no two of them
// contradict each other. That NodeMaintenances are not known at all counts as none. Errors: those of the lists;
// that the version is compacted already is one of them, and the next Read has a newer one.
func Read(ctx context.Context, c client.Reader) (Snapshot, error) {
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return Snapshot{}, fmt.Errorf("listing nodes: %w", err)
	}
	s := Snapshot{Version: nodes.ResourceVersion, Nodes: nodes.Items}
	then := &client.ListOptions{Raw: &metav1.ListOptions{
		ResourceVersion: s.Version, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}}
	var maintenances v1beta1.NodeMaintenanceList
	if err := c.List(ctx, &maintenances, then); err != nil && !Unknown(err) {
		return Snapshot{}, fmt.Errorf("listing NodeMaintenances: %w", err)
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, then); err != nil {
		return Snapshot{}, fmt.Errorf("listing pods: %w", err)
	}
	var leases coordinationv1.LeaseList
	if err := c.List(ctx, &leases, then); err != nil {
		return Snapshot{}, fmt.Errorf("listing leases: %w", err)
	}
	s.Maintenances, s.Pods, s.Leases = maintenances.Items, pods.Items, leases.Items
	return s, nil
}

// Unknown says whether a list failed because the API server knows nothing of the kind.
func Unknown(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// ReadAll is Read with the events, which come last: an event is written before the step that it tells of.
func ReadAll(ctx context.Context, c client.Reader) (Snapshot, error) {
	s, err := Read(ctx, c)
	if err != nil {
		return s, err
	}
	var events corev1.EventList
	if err := c.List(ctx, &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		return s, fmt.Errorf("listing events: %w", err)
	}
	s.Events = events.Items
	return s, nil
}
