// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The functions in this file are for kinds that have no methods of their own, such as those
// of a CustomResourceDefinition. They are no requests: they meet no faults and are not recorded.
// They panic for a type that the cluster's scheme does not know.

// Look returns a copy of an object, or nil. The namespace is empty for a kind that has none.
func Look[T Object](c *Cluster, namespace, name string) T {
	return look[T](c, resource[T](c), key{namespace, name})
}

// LookAll returns copies of all objects of a kind, by namespace and name.
func LookAll[T Object](c *Cluster) []T { return lookAll[T](c, resource[T](c)) }

// Edit changes an object, status included. It panics if there is none.
func Edit[T Object](c *Cluster, namespace, name string, f func(T)) {
	edit(c, resource[T](c), key{namespace, name}, f)
}

// Delete deletes an object as a user would: finalizers hold it. Nothing happens if there is none.
func Delete[T Object](c *Cluster, namespace, name string) {
	c.drop(resource[T](c), key{namespace, name})
}

func resource[T Object](c *Cluster) schema.GroupVersionResource {
	gvr, err := resourceOf(c.scheme, reflect.New(reflect.TypeFor[T]().Elem()).Interface().(Object))
	if err != nil {
		panic(err)
	}
	return gvr
}
