// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTwoClustersSideBySide(t *testing.T) {
	w := newWorld(t)
	c, err := Start(t.Context(), Options{Name: "beside"})
	require.NoError(t, err)
	defer c.Stop()
	_, err = Start(t.Context(), Options{Name: "beside"})
	require.ErrorContains(t, err, "already running")

	_, err = c.Client().CoreV1().Namespaces().Get(t.Context(), w.ns, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "clusters know nothing of each other")
	running, err := Running()
	require.NoError(t, err)
	found := map[string]State{}
	for _, s := range running {
		found[s.Name] = s
	}
	require.Contains(t, found, w.Name())
	require.Contains(t, found, "beside")
	health, err := found["beside"].Health(t.Context())
	require.NoError(t, err)
	require.Len(t, health, len(Components()))
	for part, err := range health {
		require.NoError(t, err, part)
	}

	start := time.Now()
	require.NoError(t, c.Stop())
	require.Less(t, time.Since(start), 2*time.Second)
	require.NoDirExists(t, c.Dir())
	for _, p := range found["beside"].Parts {
		require.False(t, alive(p.PID), "%s is gone when Stop returns", p.Component)
	}
	_, err = w.Client().CoreV1().Namespaces().Get(t.Context(), w.ns, metav1.GetOptions{})
	require.NoError(t, err, "the other cluster does not notice")
}

func TestOwnerDies(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			owner := exec.Command(os.Args[0])
			owner.Env = append(os.Environ(), ownerVariable+"=1")
			owner.Stderr = os.Stderr
			out, err := owner.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, owner.Start())
			var state State
			require.NoError(t, json.NewDecoder(out).Decode(&state))
			require.Len(t, state.Parts, len(Components()))
			require.NoError(t, owner.Process.Signal(s))
			_ = owner.Wait()
			for _, p := range state.Parts {
				require.Eventually(t, func() bool { return !alive(p.PID) }, 5*time.Second, tick, "%s must not outlive its owner", p.Component)
			}
			run, err := runDir()
			require.NoError(t, err)
			require.NoError(t, sweep(run, time.Now()))
			require.NoDirExists(t, state.Dir, "the next start removes what is left")
		})
	}
}

// alive reports whether a process runs: one that nobody has waited for yet does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func TestStartNamesThePartThatFails(t *testing.T) {
	tests := map[Component]struct{ flag, says string }{
		Etcd:      {"--data-dir=/dev/null/x", "not a directory"},
		APIServer: {"--no-such-flag", "unknown flag: --no-such-flag"},
		Scheduler: {"--no-such-flag", "unknown flag: --no-such-flag"},
	}
	for part, tt := range tests {
		t.Run(string(part), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			_, err := Start(t.Context(), Options{Dir: dir, ExtraFlags: map[Component][]string{part: {tt.flag}}})
			var failed *PartError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, part, failed.Component)
			require.Equal(t, layout{dir}.log(part), failed.Log)
			require.FileExists(t, failed.Log, "the log stays")
			require.ErrorContains(t, err, tt.says, "the end of the log is in the error")
		})
	}
}

func TestStartIsBounded(t *testing.T) {
	b, err := Build(t.Context(), BuildOptions{})
	require.NoError(t, err)
	b.APIServer = filepath.Join(t.TempDir(), "mute")
	require.NoError(t, os.WriteFile(b.APIServer, []byte("#!/bin/sh\necho thinking\nexec sleep 60\n"), 0o700))
	_, err = Start(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "d"), Binaries: b, StartTimeout: 2 * time.Second})
	require.ErrorContains(t, err, "kube-apiserver: not ready: gave up after 2s")
	require.ErrorContains(t, err, "thinking", "the end of the log is in the error")
}

func TestStartTriesOtherPorts(t *testing.T) {
	taken, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	defer taken.Close()
	collide := []Component{Etcd, APIServer, ControllerManager, Kwok} // one in each attempt
	index := map[Component]int{Etcd: 0, APIServer: 2, ControllerManager: 3, Kwok: 5}
	c, err := Start(t.Context(), Options{pickPorts: func(n int) ([]int, error) {
		p, err := freePorts(n)
		if err == nil && len(collide) > 0 {
			p[index[collide[0]]] = taken.Addr().(*net.TCPAddr).Port
			collide = collide[1:]
		}
		return p, err
	}})
	require.NoError(t, err)
	require.Empty(t, collide, "each attempt met a taken port")
	require.NoError(t, c.Stop())
}

func TestStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Start(ctx, Options{Dir: filepath.Join(t.TempDir(), "d")})
	require.ErrorIs(t, err, context.Canceled)
}
