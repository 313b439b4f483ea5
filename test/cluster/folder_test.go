// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSweep(t *testing.T) {
	now := time.Now()
	tests := map[string]struct {
		reason  string
		prepare func(t *testing.T, l layout)
		stays   bool
	}{
		"dead owner": {
			reason:  "nobody holds the lock, so nobody uses the folder",
			prepare: func(*testing.T, layout) {},
		},
		"living owner": {
			reason: "the lock is held",
			prepare: func(t *testing.T, l layout) {
				held, err := tryLock(l.lock())
				require.NoError(t, err)
				t.Cleanup(held.unlock)
			},
			stays: true,
		},
		"failed just now": {
			reason:  "somebody will want to read the logs",
			prepare: func(t *testing.T, l layout) { markFailed(t, l, now.Add(-time.Hour)) },
			stays:   true,
		},
		"failed long ago": {
			reason:  "logs do not pile up for ever",
			prepare: func(t *testing.T, l layout) { markFailed(t, l, now.Add(-25*time.Hour)) },
		},
		"kept": {
			reason: "its owner asked for it",
			prepare: func(t *testing.T, l layout) {
				require.NoError(t, State{Dir: l.dir, Keep: true}.write())
			},
			stays: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			run := t.TempDir()
			l := layout{filepath.Join(run, "x")}
			require.NoError(t, os.Mkdir(l.dir, 0o700))
			tt.prepare(t, l)
			require.NoError(t, sweep(run, now))
			if tt.stays {
				require.DirExists(t, l.dir, tt.reason)
			} else {
				require.NoDirExists(t, l.dir, tt.reason)
			}
		})
	}
}

func markFailed(t *testing.T, l layout, at time.Time) {
	require.NoError(t, os.WriteFile(l.failed(), nil, 0o600))
	require.NoError(t, os.Chtimes(l.failed(), at, at))
}

func TestClaimOwnFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	l, held, err := claimFolder(t.Context(), Options{Dir: dir})
	require.NoError(t, err)
	defer held.unlock()
	require.Equal(t, dir, l.dir)
	_, _, err = claimFolder(t.Context(), Options{Dir: dir})
	require.ErrorContains(t, err, "not empty", "an old cluster's data would not fit new certificates")
}

func TestClaimName(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	l, held, err := claimFolder(t.Context(), Options{Name: "a"})
	require.NoError(t, err)
	_, _, err = claimFolder(t.Context(), Options{Name: "a"})
	require.ErrorContains(t, err, `"a" is already running`)
	held.unlock()
	require.NoError(t, os.WriteFile(l.path("old"), nil, 0o600))
	again, held, err := claimFolder(t.Context(), Options{Name: "a"})
	require.NoError(t, err, "a dead owner's name is free")
	defer held.unlock()
	require.Equal(t, l, again)
	require.NoFileExists(t, l.path("old"), "a cluster starts fresh")
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte("a\nb\nc\n"), 0o600))
	require.Equal(t, "b\nc", tail(path, 2))
	require.Equal(t, "a\nb\nc", tail(path, 9))
	require.Contains(t, tail(path+"x", 2), "no such file", "a missing log is said, not hidden")
}

// Who waits for a cluster to end may find nothing left of it then.
func TestTheLockGoesLast(t *testing.T) {
	for range 20 {
		l := layout{t.TempDir()}
		held, err := tryLock(l.lock())
		require.NoError(t, err)
		for i := range 200 {
			dir := l.path(fmt.Sprintf("part-%d", i))
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
		}
		removed := make(chan error, 1)
		go func() {
			removed <- l.remove()
			held.unlock()
		}()
		for (State{Dir: l.dir}).alive() {
			continue
		}
		left, _ := filepath.Glob(l.path("*"))
		require.Empty(t, left)
		require.NoError(t, <-removed)
	}
}
