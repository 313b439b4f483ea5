// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// smallModule is a module with one program that builds and one that does not.
func smallModule(t *testing.T) string {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"go.mod":       "module example.invalid/small\n\ngo 1.26\n",
		"good/main.go": "package main\n\nfunc main() {}\n",
		"bad/main.go":  "package main\n\nfunc main() { nothing() }\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
	}
	return dir
}

func TestBuildSaysWhichPartFailed(t *testing.T) {
	b := build{src: smallModule(t), dst: t.TempDir(), targets: []target{{"good", "./good"}, {"bad", "./bad"}}}
	var out bytes.Buffer
	err := b.run(t.Context(), newProgress(&out, len(b.targets)))
	require.ErrorContains(t, err, "building bad")
	require.ErrorContains(t, err, filepath.Join(b.dst, "bad.log"), "the error says where the log is")
	require.ErrorContains(t, err, "undefined: nothing", "the error shows the end of the log")
	require.Contains(t, out.String(), "[1/2] good: built in")
	require.Contains(t, out.String(), "[2/2] bad: building")
	require.True(t, b.has(target{"good", ""}), "what was built stays")
	require.False(t, b.has(target{"bad", ""}), "nothing half-built stands in the cache")

	require.NoError(t, os.WriteFile(filepath.Join(b.src, "bad", "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o600))
	out.Reset()
	require.NoError(t, b.run(t.Context(), newProgress(&out, len(b.targets))))
	require.Contains(t, out.String(), "[1/2] good: in the cache", "a second build goes on where the first failed")
	require.Empty(t, b.missing())

	out.Reset()
	require.NoError(t, b.run(t.Context(), newProgress(&out, len(b.targets))))
	require.Empty(t, out.String(), "a full cache needs no word")
}

func TestBuildsTakeTurns(t *testing.T) {
	b := build{src: smallModule(t), dst: t.TempDir(), targets: []target{{"good", "./good"}}}
	other, err := tryLock(filepath.Join(b.dst, ".lock"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	require.ErrorIs(t, b.run(ctx, newProgress(&out, 1)), context.DeadlineExceeded, "one build at a time")
	require.Equal(t, 1, strings.Count(out.String(), "Another process builds"), "the wait is announced, once")
	other.unlock()
	require.NoError(t, b.run(t.Context(), newProgress(&out, 1)))
}

func TestComponentsDirIsFound(t *testing.T) {
	dir, err := componentsDir(t.Context())
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "go.sum"))
}
