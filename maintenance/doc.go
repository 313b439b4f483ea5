// SPDX-License-Identifier: Apache-2.0

// Package maintenance takes a node out of service and gives it back exactly as it was.
//
// Guarantees:
//
//   - Nothing on a node is changed before its lease is ours and before what stood there is recorded on
//     the node itself, in the annotation [RecordAnnotation].
//   - [Engine.Stop] undoes exactly what that record says is ours. An administrator's cordon, a taint or a
//     label that was there before stays, and so does whatever somebody else changed meanwhile. Without a
//     record it changes nothing, so a second Stop does nothing.
//   - Every write of taints, record and label is under optimistic lock and idempotent: a crash between any
//     two writes, followed by the same call, ends where the undisturbed call would have ended.
//   - [Succeeded] and 100 percent are said only while no pod that must leave is left.
//   - A lease that is lost, or refused after it has run out, four times in a row, at least 5 s apart, gives the node
//     back, once, and the state is Failed for good.
//   - [Engine.Stop] goes before a [Engine.Start] of the same node, ends its evictions in flight and lets
//     none begin after it.
//
// [Engine.Start] is one pass: it never waits for a pod. What it must remember is in the [State] it returns,
// which the caller keeps (in an object's status, a file, a variable) and passes to the next Start, and in
// the record on the node. Call it again when [Engine.Watch] wakes, or when State.RetryAfter is over.
// [Engine.Run] does that in a loop.
//
// Not guaranteed:
//
//   - That a maintenance ends: a budget may block it for ever. The state names what does.
//   - That others respect the lease; it is an agreement among controllers.
//   - That a mark which somebody takes off is never missing: it is put back within seconds.
package maintenance
