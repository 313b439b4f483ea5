// SPDX-License-Identifier: Apache-2.0

package quorum

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Namespace is where OpenShift runs etcd, its guard pods and their budget.
	Namespace = "openshift-etcd"
	// openShiftGroup is an API group that every OpenShift cluster serves and no other.
	openShiftGroup = "config.openshift.io"
)

// Checker answers for one cluster. It is safe for concurrent use.
type Checker struct {
	reader client.Reader
	groups discovery.ServerGroupsInterface
}

// New returns a Checker that reads pods and budgets from reader, which should not be a cache, and API
// groups from groups. It does no I/O.
func New(reader client.Reader, groups discovery.ServerGroupsInterface) *Checker {
	return &Checker{reader: reader, groups: groups}
}

// Allowed says whether node can be disrupted without breaking the quorum of etcd: always, if it is not of
// the control plane or the cluster is not OpenShift.
func (c *Checker) Allowed(ctx context.Context, node *corev1.Node) (bool, error) {
	if !ControlPlane(node) {
		return true, nil
	}
	openShift, err := c.openShift()
	if err != nil {
		return false, err
	}
	if !openShift {
		return true, nil
	}

	var budgets policyv1.PodDisruptionBudgetList
	if err := c.reader.List(ctx, &budgets, client.InNamespace(Namespace)); err != nil {
		return false, fmt.Errorf("listing budgets in namespace %q: %w", Namespace, err)
	}
	var pods corev1.PodList
	onNode := client.MatchingFields{"spec.nodeName": node.Name}
	if err := c.reader.List(ctx, &pods, client.InNamespace(Namespace), onNode); err != nil {
		return false, fmt.Errorf("listing pods in namespace %q on node %q: %w", Namespace, node.Name, err)
	}
	return Allowed(budgets.Items, pods.Items)
}

// openShift asks each time: control-plane nodes are rarely put under maintenance, and an answer from the
// time the operator started could be wrong.
func (c *Checker) openShift() (bool, error) {
	groups, err := c.groups.ServerGroups()
	if err != nil {
		return false, fmt.Errorf("asking for API group %q: %w", openShiftGroup, err)
	}
	for _, g := range groups.Groups {
		if g.Name == openShiftGroup {
			return true, nil
		}
	}
	return false, nil
}
