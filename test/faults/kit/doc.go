// SPDX-License-Identifier: Apache-2.0

// Package kit is what it takes to disturb a maintenance on a real control plane and to look what becomes of it: a
// Stage with nodes and pods, replicas of the operator that can be killed, frozen and cut off, administrators who put
// nodes in and out of maintenance, and a Watchdog that looks at the invariants all the while.
package kit
