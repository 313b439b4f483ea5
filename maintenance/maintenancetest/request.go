// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// Request is one request of a client, as recorded. Requests that never left the client,
// because their context had ended before, are not recorded, nor is what the cluster's own
// methods and controllers do.
type Request struct {
	// N numbers the writes, from 1, in the order in which they arrived. 0: a read.
	N int
	// Verb is get, list, watch, create, update, patch, delete or deletecollection.
	Verb string
	// Group, Version and Resource ("", "v1", "pods") say what it is about, with
	// Subresource ("status", "eviction") if any.
	Group, Version, Resource, Subresource string
	// Namespace and Name of the object. A list, a watch or a created object with a
	// generated name has no Name.
	Namespace, Name string
	// Object is the body of a create or update, and an eviction.
	Object runtime.Object
	// PatchType and Patch are the body of a patch.
	PatchType types.PatchType
	Patch     []byte
	// Preconditions are those of a delete or an eviction.
	Preconditions *metav1.Preconditions
	// LabelSelector and FieldSelector are those of a list, a watch or a deletecollection.
	LabelSelector, FieldSelector string
	// Answered is true once the client has its answer.
	Answered bool
	// Err is the answer, if it is an error.
	Err error

	kind        schema.GroupVersionKind // of the objects, where the client says it
	gracePeriod *int64
	dryRun      []string
	listOptions metav1.ListOptions
}

// Write tells whether the request wants to change something.
func (r Request) Write() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	}
	return true
}

// String gives one line, such as "#3 create pods/eviction shop/web-0".
func (r Request) String() string {
	var b strings.Builder
	if r.N > 0 {
		fmt.Fprintf(&b, "#%d ", r.N)
	}
	b.WriteString(r.Verb + " " + r.path())
	switch {
	case r.Namespace != "" && r.Name != "":
		b.WriteString(" " + r.Namespace + "/" + r.Name)
	case r.Namespace+r.Name != "":
		b.WriteString(" " + r.Namespace + r.Name)
	}
	if r.Err != nil {
		fmt.Fprintf(&b, ": %v", r.Err)
	}
	return b.String()
}

// path is resource, or resource/subresource.
func (r Request) path() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

func (r *Request) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// gvk is the kind, made up from the resource where the client does not say it.
func (r *Request) gvk() schema.GroupVersionKind {
	if r.kind.Kind != "" {
		return r.kind
	}
	if o, err := newObject(scheme.Scheme, r.gvr(), r.kind); err == nil {
		if kinds, _, err := scheme.Scheme.ObjectKinds(o); err == nil {
			return kinds[0]
		}
	}
	return r.gvr().GroupVersion().WithKind(r.Resource)
}

func (r *Request) key() key { return key{r.Namespace, r.Name} }

// copied returns a record that the test may keep and alter.
func (r *Request) copied() Request {
	out := *r
	if r.Object != nil {
		out.Object = r.Object.DeepCopyObject()
	}
	out.Patch = append([]byte(nil), r.Patch...)
	return out
}

// Requests returns all requests so far, reads too, in order of arrival.
func (c *Cluster) Requests() []Request { return c.recorded(func(Request) bool { return true }) }

// Writes returns the writes so far; the one with N = n is at index n-1, unless
// ClearRequests has been called.
func (c *Cluster) Writes() []Request { return c.recorded(Request.Write) }

// Matching returns the requests so far that match.
func (c *Cluster) Matching(m Match) []Request { return c.recorded(m) }

func (c *Cluster) recorded(want func(Request) bool) []Request {
	c.mu.Lock()
	all := make([]Request, 0, len(c.records))
	for _, r := range c.records {
		all = append(all, r.copied())
	}
	c.mu.Unlock()
	out := all[:0]
	for _, r := range all {
		if want(r) {
			out = append(out, r)
		}
	}
	return out
}

// ClearRequests forgets all requests, and numbers the writes from 1 again. Rules stay.
func (c *Cluster) ClearRequests() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records, c.writes = nil, 0
}

// InFlight returns the matching requests that have arrived and not been answered; nil
// matches all. Open watches are answered.
func (c *Cluster) InFlight(m Match) []Request {
	c.mu.Lock()
	var all []Request
	for _, r := range c.records {
		if _, ok := c.inFlight[r]; ok {
			all = append(all, r.copied())
		}
	}
	c.mu.Unlock()
	out := all[:0]
	for _, r := range all {
		if m == nil || m(r) {
			out = append(out, r)
		}
	}
	return out
}
