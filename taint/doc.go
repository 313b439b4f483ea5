// SPDX-License-Identifier: Apache-2.0

// Package taint edits the taints of a node without ever losing somebody else's.
//
// Guarantees:
//
//   - [With] and [Without] are pure: they return a new list and leave their input alone.
//   - A taint that is not named is kept as it stands: key, value, effect, timeAdded and place.
//   - [With] never replaces: a taint of the same key and effect stays, whatever its value, because
//     the API allows one value for each key and effect and the one that stands is somebody's.
//   - [Without] takes off only what is equal in key, value and effect, so a taint of the same key
//     with another value is not ours to remove.
//   - [Add] and [Remove] write under optimistic lock (spec.taints is an atomic list: a plain patch
//     would overwrite concurrent writers), try again on a conflict, and write nothing when nothing
//     changes.
//
// Not guaranteed: that a taint stays. kube-controller-manager adds and removes
// node.kubernetes.io/unschedulable by spec.unschedulable, within milliseconds.
package taint
