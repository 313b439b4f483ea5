// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the operator and the library on a real control plane, with the operator running as its
// own process under its own service account. All tests of the package share one cluster and one operator;
// a test that has to change what others rely on brings up its own (see own).
//
// Every test works on its own nodes, named after it, and in its own namespaces.
package e2e
