// SPDX-License-Identifier: Apache-2.0

package cluster

import "syscall"

// ownGroup gives a child its own process group, and has the kernel kill it when
// the thread that started it ends, so also after kill -9 of this process.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
