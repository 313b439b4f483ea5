// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUsageIsTheProcessesOwn has a large process ask about a small one.
func TestUsageIsTheProcessesOwn(t *testing.T) {
	large := make([]byte, 256<<20)
	for i := range large {
		large[i] = 1
	}
	own, err := peakOf(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, own, uint64(256<<20))
	used, err := cpuSoFar(os.Getpid())
	require.NoError(t, err)
	require.Positive(t, used)

	cat := exec.CommandContext(t.Context(), "cat") // it ends when its input does
	in, err := cat.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cat.Start())
	p := watchPeaks([]int{cat.Process.Pid})
	small, err := peakOf(cat.Process.Pid)
	require.NoError(t, err)
	require.Less(t, small, uint64(64<<20))
	require.NoError(t, in.Close())
	require.NoError(t, cat.Wait())
	runtime.KeepAlive(large)

	_, err = p.sum(2)
	require.ErrorIs(t, err, errUnseen, "there was one process only")
}
