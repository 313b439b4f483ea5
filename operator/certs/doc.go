// SPDX-License-Identifier: Apache-2.0

// Package certs gives the webhook server its certificate: from a folder that somebody else fills, or, if
// there is none, one that it makes, keeps in a Secret, and renews.
//
// Guarantees of a managed certificate:
//
//   - It is served from memory, by every replica, as soon as it stands in the Secret: no kubelet has to
//     mount anything, no key is written to a disk, and a renewal needs no restart.
//   - The API server is told the authority that signed it: in the webhook configuration, again whenever
//     somebody takes it out.
//   - It is made anew long before it ends, when it is not for the names it must be for, and when somebody
//     breaks or deletes the Secret. Replicas may do that at once: one of them wins, by optimistic lock.
//   - Of all Secrets and webhook configurations only the one of each is read or watched.
//
// Not guaranteed: that no create is refused in the moment in which a new authority replaces the old one,
// once in ten years. A new certificate of the same authority disturbs nothing.
package certs
