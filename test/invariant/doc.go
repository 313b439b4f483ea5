// SPDX-License-Identifier: Apache-2.0

// Package invariant says what must be so of a cluster on which nodes are maintained, whatever went wrong on the
// way. Each rule is a pure function over a Snapshot, or over the audit log, that returns what breaks it.
//
// Rules of any moment, which Always joins:
//
//   - Progress is within 0 and 100; Succeeded, or 100, is said of no node with a pod left that must leave.
//   - A node without a NodeMaintenance looks as it did before, with what others changed meanwhile, and no lease
//     of ours claims it.
//   - No node has two leases, nor a record and a lease that name different holders.
//   - No event that is to be there once is there twice.
//
// Rules of a cluster where nothing stands in the way any more, which AtRest joins:
//
//   - Every NodeMaintenance has succeeded, and every one that has gone has told each of its steps.
//   - No lease of ours is left without a NodeMaintenance; the taint of unschedulable nodes is on those and on
//     no other.
//
// Rules of the whole past, from the audit log:
//
//   - Evictions: every eviction was posted while its node had a NodeMaintenance and its lease was ours.
//   - OneLeader: of replicas that elect a leader, none touched a pod or a node while another led.
//
// A Gap, found in the audit log, explains why a node is still held for an object that is gone.
//
// Not checked here: how long anything took.
package invariant
