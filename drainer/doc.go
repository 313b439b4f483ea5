// SPDX-License-Identifier: Apache-2.0

// Package drainer moves the pods of a node away through the Eviction API: one pass at a time, which
// evicts what can be evicted, says of every pod where it stands, and never waits for a pod to go.
//
// Guarantees:
//
//   - No budget is broken: pods go through policy/v1 evictions, unless [Options] ask for more.
//   - Every eviction names the pod's UID, so a pod that took a name over is never evicted in its place.
//   - A pod that is terminating, or whose eviction was accepted, is never evicted again.
//   - One call at a time is in flight for a pod, at most [Options.MaxInFlight] in all and half of them for one
//     node, and nodes take turns. Only pods behind one budget wait for each other, a second at most for a slow call.
//   - A pod about which nothing certain is known counts as not gone.
//   - [Drainer.Cancel] ends the calls in flight for a node and returns when they have ended.
//
// Which pods leave is decided by kubectl's own filters (k8s.io/kubectl/pkg/drain), so that a node is
// drained of exactly what "kubectl drain --ignore-daemonsets --delete-emptydir-data --force" drains it
// of, with one difference: a finished pod of a DaemonSet that exists stays, because the DaemonSet's
// controller removes it.
//
// While [Drainer.Watch] lives, a pass reads the node's pods from that watch and makes no request but the evictions
// it owes, and where only the API server can say: of a pod that seems gone, of budgets not copied yet. Without it each pass lists them. The budgets of the namespaces whose pods must leave
// are watched too, once for all nodes: pods behind one budget go two at a time as it allows, and while
// it allows none, one eviction in [RetryDelay] asks for all that wait.
//
// Not guaranteed: that a drain ends. A budget that never allows a disruption, or a webhook that always
// refuses, blocks it until somebody acts; [Report] names what does.
//
// A client of client-go is limited to 5 requests a second unless told otherwise: with that limit 300
// evictions take a minute. Set rest.Config.QPS to -1 for a client given to [New]; the API server's
// priority and fairness protects it better.
package drainer
