// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// MaintenanceOf returns an object that is named like its node.
func MaintenanceOf(node string) *v1beta1.NodeMaintenance {
	return &v1beta1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: v1beta1.NodeMaintenanceSpec{NodeName: node}}
}

// Maintain puts the node under maintenance. It tries until it is admitted: the webhook may be away, or an answer
// lost.
func (s *Stage) Maintain(ctx context.Context, n Node) error {
	return s.Until(ctx, "a maintenance of node "+n.Name+" to be admitted", func(ctx context.Context) error {
		err := s.Create(ctx, MaintenanceOf(n.Name))
		if err != nil && s.Get(ctx, client.ObjectKey{Name: n.Name}, &v1beta1.NodeMaintenance{}) == nil {
			return nil
		}
		return err
	})
}

// Await waits until the maintenance of the node is as asked for. The error says how it is instead.
func (s *Stage) Await(ctx context.Context, n Node, what string, ok func(v1beta1.NodeMaintenanceStatus) bool) error {
	return s.Until(ctx, fmt.Sprintf("the maintenance of node %s: %s", n.Name, what), s.is(n, ok))
}

// is returns an error as long as the maintenance of the node is not as asked for.
func (s *Stage) is(n Node, ok func(v1beta1.NodeMaintenanceStatus) bool) func(context.Context) error {
	return func(ctx context.Context) error {
		var nm v1beta1.NodeMaintenance
		if err := s.Get(ctx, client.ObjectKey{Name: n.Name}, &nm); err != nil {
			return err
		}
		if !ok(nm.Status) {
			return fmt.Errorf("%w: phase %q, progress %d, last error %q, pending %v", errNotYet,
				nm.Status.Phase, nm.Status.DrainProgress, nm.Status.LastError, nm.Status.PendingPods)
		}
		return nil
	}
}

var errNotYet = errors.New("not yet")

// Succeeded is for Await.
func Succeeded(st v1beta1.NodeMaintenanceStatus) bool {
	return st.Phase == v1beta1.MaintenanceSucceeded
}

// Begun is for Await: the node is claimed and its pods are counted.
func Begun(st v1beta1.NodeMaintenanceStatus) bool { return st.Phase != "" }

// GiveBack asks for the end of a maintenance, and does not wait for it. That there is none is no error.
func (s *Stage) GiveBack(ctx context.Context, n Node) error {
	return s.Until(ctx, "the maintenance of node "+n.Name+" to be deleted", func(ctx context.Context) error {
		return client.IgnoreNotFound(s.Delete(ctx, MaintenanceOf(n.Name)))
	})
}

// Gone waits until the maintenance of the node is gone.
func (s *Stage) Gone(ctx context.Context, n Node) error {
	return s.Until(ctx, "the maintenance of node "+n.Name+" to go", s.isGone(n))
}

func (s *Stage) isGone(n Node) func(context.Context) error {
	return func(ctx context.Context) error {
		var nm v1beta1.NodeMaintenance
		err := s.Get(ctx, client.ObjectKey{Name: n.Name}, &nm)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("%w: phase %q, finalizers %v, last error %q", errNotYet, nm.Status.Phase, nm.Finalizers, nm.Status.LastError)
	}
}
