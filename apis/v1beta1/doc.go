// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the Go types of the NodeMaintenance custom resource, version v1beta1 of the group
// nodemaintenance.medik8s.io.
//
// Guarantees:
//
//   - It imports k8s.io/apimachinery and nothing else, so that a client of the resource gets no other
//     dependency with it.
//   - An object that the medik8s Node Maintenance Operator has written is a valid object of these types;
//     what they do not know of it (its totalpods) is dropped.
//   - A zero count is written, never omitted, and an unset time is omitted, never null.
//
// Not guaranteed: that a field means anything without an operator that fills it.
//
// +kubebuilder:object:generate=true
// +groupName=nodemaintenance.medik8s.io
package v1beta1
