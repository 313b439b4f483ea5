// SPDX-License-Identifier: Apache-2.0

// Package quorum tells whether a control-plane node of OpenShift can be disrupted without breaking the
// quorum of etcd.
//
// Guarantees:
//
//   - Doubt refuses: without the one budget that guards etcd, or with several, or when something cannot be
//     read, a disruption is not allowed.
//   - A node that takes no part in the control plane costs no request.
//
// Not guaranteed: that the answer still holds a moment later. Two nodes that are asked about at once can
// both be allowed; the budget then holds up the drain of the second.
package quorum
