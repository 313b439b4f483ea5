// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/lease"
	"github.com/nodemaint/nodemaint/test/faults/kit"
)

// leaseNamespace deletes the namespace of the leases while some nodes are drained and others are blocked.
type leaseNamespace struct{}

func (leaseNamespace) name() string  { return "leases" }
func (leaseNamespace) title() string { return "the namespace of the leases is deleted" }

func (f leaseNamespace) run(ctx context.Context, s *stage) (string, error) {
	nodes, err := s.AddNodes(ctx, f.name(), 9, 5)
	if err != nil {
		return "", err
	}
	if err := maintainAll(ctx, s, nodes); err != nil {
		return "", err
	}
	before := map[string]types.UID{}
	for _, n := range nodes {
		l, err := leaseOf(ctx, s, n)
		if err != nil {
			return "", err
		}
		before[n.Name] = l.UID
	}
	if err := s.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: lease.DefaultNamespace}}); err != nil {
		return "", fmt.Errorf("deleting the namespace of the leases: %w", err)
	}
	for _, n := range nodes {
		err := s.Until(ctx, "a new lease of node "+n.Name, func(ctx context.Context) error {
			l, err := leaseOf(ctx, s, n)
			if err == nil && l.UID == before[n.Name] {
				err = errOldLease
			}
			return err
		})
		if err != nil {
			return "", err
		}
		if err := s.Await(ctx, n, "to have lost nothing", unharmed); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d new leases, no failure counted", len(nodes)), nil
}

var errOldLease = errors.New("it is still the old one")

// maintainAll maintains all nodes until those with a budget are blocked and the others are drained.
func maintainAll(ctx context.Context, s *stage, nodes []kit.Node) error {
	for _, n := range nodes {
		if err := errors.Join(s.Forbid(ctx, n), s.Maintain(ctx, n)); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		ok, what := kit.Succeeded, "to succeed"
		if n.Budgeted {
			ok, what = blocked, "to be blocked"
		}
		if err := s.Await(ctx, n, what, ok); err != nil {
			return err
		}
	}
	return nil
}

func blocked(st v1beta1.NodeMaintenanceStatus) bool {
	return conditionReason(st, v1beta1.ConditionDrained) == v1beta1.ReasonBlockedByBudget
}

// unharmed says that the lease is held, and that no failure was ever counted.
func unharmed(st v1beta1.NodeMaintenanceStatus) bool {
	return conditionReason(st, v1beta1.ConditionLeaseHeld) == v1beta1.ReasonHeld && st.ErrorOnLeaseCount == 0
}

func conditionReason(st v1beta1.NodeMaintenanceStatus, condition string) string {
	for _, c := range st.Conditions {
		if c.Type == condition {
			return c.Reason
		}
	}
	return ""
}

func leaseOf(ctx context.Context, s *stage, n kit.Node) (*coordinationv1.Lease, error) {
	l := &coordinationv1.Lease{}
	return l, s.Get(ctx, types.NamespacedName{Namespace: lease.DefaultNamespace, Name: lease.Name(n.Name)}, l)
}
