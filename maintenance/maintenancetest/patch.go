// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// patch answers a patch of an object or of its status. A resourceVersion in the patch is
// a precondition, since the patched object then carries it. The caller holds c.mu.
func (c *Cluster) patch(r *Request) (runtime.Object, error) {
	old, exists := c.store.get(r.gvr(), r.key())
	if !exists {
		return nil, notFound(r)
	}
	was, err := json.Marshal(old)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: %w", r.gvr().Resource, r.Name, err)
	}
	is, err := patched(r, was, old)
	if err != nil {
		return nil, err
	}
	o, err := decodeLike(old, is)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return c.replace(r, old, o)
}

// patched applies the body of a request to an encoded object.
func patched(r *Request, was []byte, like object) ([]byte, error) {
	switch r.PatchType {
	case types.MergePatchType:
		is, err := jsonpatch.MergePatch(was, r.Patch)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return is, nil
	case types.StrategicMergePatchType:
		is, err := strategicpatch.StrategicMergePatch(was, r.Patch, like)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return is, nil
	case types.JSONPatchType:
		ops, err := jsonpatch.DecodePatch(r.Patch)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		is, err := ops.Apply(was)
		if err != nil { // also a test operation that fails
			return nil, apierrors.NewGenericServerResponse(422, r.Verb, r.gvr().GroupResource(), r.Name, err.Error(), 0, false)
		}
		return is, nil
	default:
		return nil, apierrors.NewGenericServerResponse(415, r.Verb, r.gvr().GroupResource(), r.Name,
			fmt.Sprintf("patches of type %s are not supported by maintenancetest", r.PatchType), 0, false)
	}
}
