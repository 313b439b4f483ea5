// SPDX-License-Identifier: Apache-2.0

// Package operator keeps nodes under maintenance as NodeMaintenance objects ask for it. It is one thin
// consumer of package maintenance: it fetches the object, rebuilds the state of the maintenance from its
// status, makes one pass, and writes the status back. What happens to a node, a lease or a pod is decided
// and done below it.
//
// Guarantees:
//
//   - One object acts for a node: the earliest. The others say which one, and take over when it goes.
//   - The events BeginMaintenance, SucceedMaintenance, FailedMaintenance, UncordonNode, RestoreIncomplete and
//     RemovedMaintenance are created once for an object, also across crashes: under a name made from the
//     object's UID, before the write that makes the step final. PodBlocked, NodeHeldAgain, LeaseLost and LeaseRefused are
//     sent by a recorder, and may be lost or come again.
//   - The finalizer goes last, when the node and its lease are given back.
//   - A blocked node holds up no other: no pass waits for a pod.
//   - A delete ends the pass of its object, whatever that waits for; no pass keeps a worker for more than 30 s.
package operator
