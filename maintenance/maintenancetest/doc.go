// SPDX-License-Identifier: Apache-2.0

// Package maintenancetest is a fake Kubernetes cluster for unit tests.
package maintenancetest
