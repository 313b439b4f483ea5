// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import "sync/atomic"

// Match chooses requests; nil chooses all. It may use the cluster's getters.
type Match func(Request) bool

// On matches a verb on a resource or subresource: On("create", "pods/eviction"),
// On("patch", "nodes"). "*" stands for any verb, and for any resource.
func On(verb, resource string) Match {
	return func(r Request) bool {
		return (verb == "*" || verb == r.Verb) && (resource == "*" || resource == r.path())
	}
}

// Write matches the write with this number.
func Write(n int) Match { return func(r Request) bool { return r.N == n } }

// Writes matches all writes.
func Writes() Match { return Request.Write }

// Reads matches all reads: get, list and watch.
func Reads() Match { return func(r Request) bool { return !r.Write() } }

// NthRead matches the n-th of the reads that are answered at once, gets and lists.
func NthRead(n int) Match {
	var seen atomic.Int64
	return func(r Request) bool { return (r.Verb == "get" || r.Verb == "list") && seen.Add(1) == int64(n) }
}

// Named narrows a match to one object. An empty namespace or name matches any.
func (m Match) Named(namespace, name string) Match {
	return func(r Request) bool {
		return m(r) && (namespace == "" || namespace == r.Namespace) && (name == "" || name == r.Name)
	}
}
