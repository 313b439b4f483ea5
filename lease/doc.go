// SPDX-License-Identifier: Apache-2.0

// Package lease says who may maintain a node: the holder of the coordination.k8s.io Lease of that
// node's name, which several controllers agree to ask for before they touch it.
//
// Guarantees:
//
//   - A lease that somebody else holds and that has not run out is never written, and never deleted.
//   - Every write is under optimistic lock, so two holders cannot both win; a conflict is looked at
//     again and is not an error.
//   - That somebody else holds a lease, and the first time that we do, is said only after a read from the
//     API server, never from a watch's copy. A renewTime in the future (a rival's clock is ahead) counts as valid.
//   - [Manager.Release] deletes exactly the object it read, and only if it is ours.
//
// Not guaranteed:
//
//   - That nobody acts without asking: a lease is an agreement, not a lock in the API server.
//   - That a holder notices a loss at once: it learns it when it asks again. Clocks that differ by
//     more than the duration of the lease defeat it, as they defeat every lease.
package lease
