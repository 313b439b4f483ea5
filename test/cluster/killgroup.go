// SPDX-License-Identifier: Apache-2.0

package cluster

import "syscall"

// killGroup kills a process that ownGroup was used for, and its children.
func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }
