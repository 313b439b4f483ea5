// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// get answers a read of one object. The caller holds c.mu.
func (c *Cluster) get(r *Request) (runtime.Object, error) {
	if r.Subresource != "" && r.Subresource != "status" {
		return nil, unsupported(r)
	}
	o, ok := c.store.get(r.gvr(), r.key())
	if !ok {
		return nil, notFound(r)
	}
	return copyOf(o), nil
}

// list answers a read of a collection. The caller holds c.mu.
func (c *Cluster) list(r *Request) (runtime.Object, error) {
	version, err := c.versionFor(r)
	if err != nil {
		return nil, err
	}
	items, err := c.selectedAt(version, r)
	if err != nil {
		return nil, err
	}
	gvk := r.kind
	gvk.Kind += "List"
	list, err := c.scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("making the list of %s: %w", r.gvr(), err)
	}
	out := make([]runtime.Object, 0, len(items))
	for _, o := range items {
		out = append(out, copyOf(o))
	}
	if err := meta.SetList(list, out); err != nil {
		return nil, fmt.Errorf("filling the list of %s: %w", r.gvr(), err)
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("filling the list of %s: %w", r.gvr(), err)
	}
	m.SetResourceVersion(strconv.FormatUint(version, 10))
	return list, nil
}

// selected returns the stored objects that a request's namespace and selectors name.
func (c *Cluster) selected(r *Request) ([]object, error) { return c.selectedAt(c.store.rv, r) }

// selectedAt returns those of an earlier version.
func (c *Cluster) selectedAt(version uint64, r *Request) ([]object, error) {
	sel, err := newSelection(r.gvr(), r.Namespace, "", r.listOptions)
	if err != nil {
		return nil, err
	}
	var out []object
	for _, o := range c.store.at(version, r.gvr(), r.Namespace) {
		if sel.matches(o) {
			out = append(out, o)
		}
	}
	return out, nil
}

func notFound(r *Request) error {
	return apierrors.NewNotFound(r.gvr().GroupResource(), r.Name)
}

func unsupported(r *Request) error {
	return apierrors.NewMethodNotSupported(r.gvr().GroupResource(), r.Verb+" "+r.Subresource)
}
