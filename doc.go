// SPDX-License-Identifier: Apache-2.0

// Package nodemaint is the map of this module: node maintenance for Kubernetes as a library, and an operator
// that is one consumer of it. It has no code of its own.
//
// Which package to pick:
//
//   - [github.com/nodemaint/nodemaint/maintenance] takes a node out of service and gives it back exactly as it
//     was: lease, record, marks, drain, progress. Start here; the others are what it is made of.
//   - [github.com/nodemaint/nodemaint/drainer] moves the pods of a node away through the Eviction API, one pass
//     at a time, and says of each pod where it stands. For draining without leases and marks.
//   - [github.com/nodemaint/nodemaint/lease] says who may maintain a node. For any controller that wants to keep
//     out of the way of others.
//   - [github.com/nodemaint/nodemaint/taint] edits the taints of a node without losing anybody else's.
//   - [github.com/nodemaint/nodemaint/maintenance/maintenancetest] is a fake cluster that behaves where the fake
//     clientset does not: evictions, budgets, field selectors, conflicts, faults. For tests, ours and yours.
//   - [github.com/nodemaint/nodemaint/apis/v1beta1] has the types of the NodeMaintenance resource.
//   - [github.com/nodemaint/nodemaint/operator] reconciles them; operator/cmd/manager is its program, operator/config
//     its manifests.
//
// Dependencies point one way: operator to maintenance, maintenance to taint, lease and drainer. Nothing below
// operator knows controller-runtime or the resource. The folder examples has other consumers; the folder test a
// real control plane made of Go modules, with the end-to-end tests and the demo that run on it, in modules of
// their own, so that no importer gets their dependencies.
package nodemaint
