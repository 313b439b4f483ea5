// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

var (
	podsResource       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodesResource      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	eventsResource     = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	secretsResource    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	leasesResource     = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	budgetsResource    = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	daemonSetsResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
)

// needsVersion tells whether an update of a resource must carry a resourceVersion.
func needsVersion(gvr schema.GroupVersionResource) bool {
	return gvr == leasesResource || gvr == budgetsResource || custom(gvr)
}

// custom tells whether a resource is none of Kubernetes' own: a CustomResourceDefinition's.
func custom(gvr schema.GroupVersionResource) bool { return !scheme.Scheme.IsGroupRegistered(gvr.Group) }

// updateCreates tells whether an update of a missing object of a resource creates it.
func updateCreates(gvr schema.GroupVersionResource) bool {
	return gvr == leasesResource || gvr.Resource == "events" || gvr.Resource == "services"
}

// counted tells whether a resource has a metadata.generation that counts changes of its spec.
func counted(gvr schema.GroupVersionResource) bool {
	switch gvr.Group {
	case "apps", "batch", "policy", "networking.k8s.io":
		return true
	}
	return gvr == podsResource || gvr.Resource == "replicationcontrollers" || custom(gvr)
}

// creationResetsStatus tells whether a client's create cannot set the status of a resource.
// A node comes with its status, as a kubelet registers it.
func creationResetsStatus(gvr schema.GroupVersionResource) bool {
	return gvr != nodesResource
}

// resourceOf guesses the resource of a typed object.
func resourceOf(s *runtime.Scheme, o runtime.Object) (schema.GroupVersionResource, error) {
	kinds, _, err := s.ObjectKinds(o)
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("finding the resource of a %T: %w", o, err)
	}
	gvr, _ := meta.UnsafeGuessKindToResource(kinds[0])
	return gvr, nil
}

// newObject makes an empty object of a resource, whose kind may be unknown (a watch does
// not say it).
func newObject(s *runtime.Scheme, gvr schema.GroupVersionResource, gvk schema.GroupVersionKind) (object, error) {
	if gvk.Kind == "" {
		gvk = kindOf(s, gvr)
	}
	o, err := s.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("making an object of %s: %w", gvr, err)
	}
	out, ok := o.(object)
	if !ok {
		return nil, fmt.Errorf("making an object of %s: %T has no metadata", gvr, o)
	}
	return out, nil
}

// kindOf guesses the kind of a resource.
func kindOf(s *runtime.Scheme, gvr schema.GroupVersionResource) schema.GroupVersionKind {
	var gvk schema.GroupVersionKind
	for k := range s.KnownTypes(gvr.GroupVersion()) {
		guess := gvr.GroupVersion().WithKind(k)
		if plural, _ := meta.UnsafeGuessKindToResource(guess); plural == gvr {
			gvk = guess
		}
	}
	return gvk
}

// normal returns a copy of an object as it looks after a trip over the wire: times cut to
// what the API stores, empty fields gone, no type and no managed fields.
func normal(o object) (object, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	return decodeLike(o, data)
}

// decodeLike decodes JSON into a new object of the type of o.
func decodeLike(o object, data []byte) (object, error) {
	out := reflect.New(reflect.TypeOf(o).Elem()).Interface().(object)
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("decoding %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	out.SetManagedFields(nil)
	return out, nil
}

// part returns the addressable field ("Spec", "Status") of a typed object, if it has one.
func part(o object, name string) (reflect.Value, bool) {
	v := reflect.ValueOf(o).Elem()
	if v.Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	f := v.FieldByName(name)
	return f, f.IsValid() && f.CanSet()
}

// copyPart sets a field of an object from another of the same type. The two share memory
// afterwards, so the source must be a copy.
func copyPart(to, from object, name string) {
	if t, ok := part(to, name); ok {
		f, _ := part(from, name)
		t.Set(f)
	}
}
