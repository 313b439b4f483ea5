// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// command builds this program and returns a function that runs it. It must be a
// real program: --detach starts itself once more.
func command(t *testing.T) func(args ...string) (stdout, stderr string, err error) {
	bin := filepath.Join(t.TempDir(), "cluster")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	return func(args ...string) (string, string, error) {
		cmd := exec.CommandContext(t.Context(), bin, args...)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		return stdout.String(), stderr.String(), err
	}
}

func TestUpStatusDown(t *testing.T) {
	run := command(t)
	const name = "command-test"
	stdout, stderr, err := run("up", "--detach", "--nodes", "2", "--name", name)
	require.NoError(t, err, stderr)
	t.Cleanup(func() { _, _, _ = run("down", "--name", name) })
	kubeconfig, kubectl := shellLines(t, stdout)

	out, err := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", kubeconfig, "get", "nodes", "--no-headers").Output()
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(out), " Ready "), "both nodes are there when up returns")

	_, stderr, err = run("up", "--detach", "--name", name)
	require.Error(t, err)
	require.Contains(t, stderr, `cluster "`+name+`" is already running`, "what the background process said is shown")

	stdout, stderr, err = run("status")
	require.NoError(t, err, stderr)
	require.Contains(t, stdout, name+": up for ")
	require.Contains(t, stdout, kubeconfig)
	require.Regexp(t, `kwok +ok`, stdout)

	stdout, stderr, err = run("down", "--name", name)
	require.NoError(t, err, stderr)
	require.Contains(t, stdout, "has ended")
	require.NoFileExists(t, kubeconfig)
}

// shellLines reads what up prints for a shell.
func shellLines(t *testing.T, stdout string) (kubeconfig, kubectl string) {
	for line := range strings.Lines(stdout) {
		line = strings.TrimSpace(line)
		if v, ok := strings.CutPrefix(line, "export KUBECONFIG="); ok {
			kubeconfig = strings.Trim(v, `"`)
		}
		if v, ok := strings.CutPrefix(line, "# kubectl: "); ok {
			kubectl = v
		}
	}
	require.NotEmpty(t, kubeconfig)
	require.NotEmpty(t, kubectl)
	return kubeconfig, kubectl
}

func TestBadInput(t *testing.T) {
	run := command(t)
	tests := map[string]struct {
		reason string
		args   []string
		says   string
	}{
		"unknown cluster": {reason: "down says what is wrong", args: []string{"down", "--name", "no-such"}, says: `no cluster "no-such"`},
		"negative nodes":  {reason: "refused before anything starts", args: []string{"up", "--nodes", "-1"}, says: "--nodes -1"},
		"bad name":        {reason: "refused before anything starts", args: []string{"up", "--name", "a/b"}, says: "lower-case letters"},
		"argument":        {reason: "a forgotten dash is not ignored", args: []string{"up", "name"}, says: "unknown command"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, stderr, err := run(tt.args...)
			require.Error(t, err, tt.reason)
			require.Contains(t, stderr, tt.says, tt.reason)
		})
	}
}
