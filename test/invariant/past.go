// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"net/http"
	"slices"

	"github.com/nodemaint/nodemaint/lease"
	"github.com/nodemaint/nodemaint/test/cluster"
)

// Evictions holds that user, the operator, posted an eviction only while the pod's node had a NodeMaintenance, or
// in a gap, and its lease was ours. Every NodeMaintenance must be named like its node, and nodeOf say which node a pod is on.
//
// A request that the API server could not answer may have taken effect all the same: it counts for us. So does
// what is not in the log at all, such as the end of an object that went with its CustomResourceDefinition.
func Evictions(log []cluster.AuditEvent, user string, nodeOf func(namespace, pod string) string) []Breach {
	r := rule{name: "eviction"}
	gaps := Gaps(log, user)
	objects, leases := map[string]object{}, map[string]bool{}
	for _, e := range inOrder(log) {
		switch {
		case isEviction(e) && e.User == user:
			n := nodeOf(e.Namespace, e.Name)
			if !objects[n].there && !explained(n, gaps, e.Time, e.Time) {
				r.broken(e.Namespace+"/"+e.Name, "an eviction was posted at %s, when node %q had no NodeMaintenance", e.Time, n)
			}
			if !leases[n] {
				r.broken(e.Namespace+"/"+e.Name, "an eviction was posted at %s, when the lease of node %q was not ours", e.Time, n)
			}
		case e.Resource == "nodemaintenances" && e.Subresource == "":
			objects[e.Name] = objects[e.Name].after(e, user)
		case e.Resource == "leases":
			if n, ok := cutLease(e); ok {
				leases[n] = leaseAfter(leases[n], e, user)
			}
		}
	}
	return r.out
}

// object is a NodeMaintenance as the log shows it.
type object struct{ there, adopted bool }

// after returns what the object is after a request. The operator writes the object itself twice: when it puts its
// finalizer on, and when it takes it off, which ends it.
func (o object) after(e cluster.AuditEvent, user string) object {
	switch {
	case e.Verb == "create" && mayHaveHappened(e):
		return object{there: true}
	case e.Verb == "create" && e.Code == http.StatusConflict && !o.there: // what was made without an answer
		return object{there: true}
	case e.Verb == "patch" && happened(e) && e.User == user && !o.adopted: // a deletion that came in before may have crossed it
		return object{there: true, adopted: true}
	case e.Verb == "patch" && happened(e) && e.User == user:
		return object{}
	case e.Verb == "delete" && happened(e) && !o.adopted:
		return object{}
	}
	return o
}

// leaseAfter says whether a lease is ours after a request.
func leaseAfter(was bool, e cluster.AuditEvent, user string) bool {
	switch e.Verb {
	case "create", "update", "patch":
		if e.User == user && mayHaveHappened(e) {
			return true
		}
		return was && !happened(e)
	case "delete":
		return was && !happened(e)
	}
	return was
}

// cutLease returns the node whose lease the request is for.
func cutLease(e cluster.AuditEvent) (string, bool) {
	if e.Namespace == nodeLeases || len(e.Name) <= len(lease.Name("")) || e.Name[:len(lease.Name(""))] != lease.Name("") {
		return "", false
	}
	return e.Name[len(lease.Name("")):], true
}

// OneLeader holds that of the replicas of user, told apart by their credentials, none touched a pod or a node
// while another led: that is who wrote the lease of that name last.
func OneLeader(log []cluster.AuditEvent, user, namespace, name string) []Breach {
	r := rule{name: "one leader"}
	leader := ""
	for _, e := range inOrder(log) {
		switch {
		case e.User != user:
		case e.Resource == "leases" && e.Namespace == namespace && e.Name == name:
			if e.Verb != "get" && happened(e) {
				leader = e.Credential
			}
		case (isEviction(e) || isNodeWrite(e)) && leader != "" && e.Credential != leader:
			r.broken(e.Resource+" "+e.Namespace+"/"+e.Name, "%s %s at %s by %s, while %s led", e.Verb, e.Subresource, e.Time, e.Credential, leader)
		}
	}
	return r.out
}

func isEviction(e cluster.AuditEvent) bool {
	return e.Resource == "pods" && e.Subresource == "eviction" && e.Verb == "create"
}

func isNodeWrite(e cluster.AuditEvent) bool {
	return e.Resource == "nodes" && slices.Contains([]string{"patch", "update", "delete"}, e.Verb)
}

func happened(e cluster.AuditEvent) bool { return e.Code >= 200 && e.Code < 300 }

// mayHaveHappened says whether the request took effect, or nobody knows.
func mayHaveHappened(e cluster.AuditEvent) bool { return happened(e) || e.Code == 0 || e.Code >= 500 }

// inOrder returns the requests in the order in which they came in.
func inOrder(log []cluster.AuditEvent) []cluster.AuditEvent {
	return slices.SortedStableFunc(slices.Values(log), func(a, b cluster.AuditEvent) int {
		return a.Time.Compare(b.Time)
	})
}
