// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// typed is a client of one kind in one namespace that passes contexts on. Like a real
// client it returns an empty object, never nil, along with an error.
type typed[T object, L runtime.Object] struct {
	c         *Cluster
	gvr       schema.GroupVersionResource
	kind      string
	ns        string
	empty     func() T
	emptyList func() L
}

// ask sends an action's request to the cluster.
func (t *typed[T, L]) ask(ctx context.Context, a clienttesting.Action) (T, error) {
	r, _ := requestOf(a)
	obj, err := t.c.serve(ctx, r)
	if out, ok := obj.(T); ok && err == nil {
		return out, nil
	}
	return t.empty(), err
}

// Get reads one object.
func (t *typed[T, L]) Get(ctx context.Context, name string, o metav1.GetOptions) (T, error) {
	return t.ask(ctx, clienttesting.NewGetActionWithOptions(t.gvr, t.ns, name, o))
}

// List reads all selected objects.
func (t *typed[T, L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	gvk := t.gvr.GroupVersion().WithKind(t.kind)
	r, _ := requestOf(clienttesting.NewListActionWithOptions(t.gvr, gvk, t.ns, o))
	obj, err := t.c.serve(ctx, r)
	if out, ok := obj.(L); ok && err == nil {
		return out, nil
	}
	return t.emptyList(), err
}

// Watch opens a watch, which ends with the context.
func (t *typed[T, L]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	r, _ := requestOf(clienttesting.NewWatchActionWithOptions(t.gvr, t.ns, o))
	return t.c.serveWatch(ctx, r)
}

// Create creates an object.
func (t *typed[T, L]) Create(ctx context.Context, obj T, o metav1.CreateOptions) (T, error) {
	return t.ask(ctx, clienttesting.NewCreateActionWithOptions(t.gvr, t.ns, obj, o))
}

// Update replaces an object.
func (t *typed[T, L]) Update(ctx context.Context, obj T, o metav1.UpdateOptions) (T, error) {
	return t.ask(ctx, clienttesting.NewUpdateActionWithOptions(t.gvr, t.ns, obj, o))
}

// UpdateStatus replaces the status of an object.
func (t *typed[T, L]) UpdateStatus(ctx context.Context, obj T, o metav1.UpdateOptions) (T, error) {
	return t.ask(ctx, clienttesting.NewUpdateSubresourceActionWithOptions(t.gvr, "status", t.ns, obj, o))
}

// Patch patches an object or a subresource of it.
func (t *typed[T, L]) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (T, error) {
	return t.ask(ctx, clienttesting.NewPatchSubresourceActionWithOptions(t.gvr, t.ns, name, pt, data, o, subresources...))
}

// Delete deletes an object.
func (t *typed[T, L]) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	_, err := t.ask(ctx, clienttesting.NewDeleteActionWithOptions(t.gvr, t.ns, name, o))
	return err
}

// DeleteCollection deletes all selected objects.
func (t *typed[T, L]) DeleteCollection(ctx context.Context, o metav1.DeleteOptions, lo metav1.ListOptions) error {
	_, err := t.ask(ctx, clienttesting.NewDeleteCollectionActionWithOptions(t.gvr, t.ns, o, lo))
	return err
}
