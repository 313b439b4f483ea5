// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/nodemaint/nodemaint/test/cluster"
)

// childReadyFD is the first descriptor after the standard three.
const childReadyFD = 3

// readyWord is what the child writes when its cluster is up.
const readyWord = "up"

// detach starts this program once more, in a session of its own, and waits until
// its cluster is up. The binaries are built first, where the progress can be seen.
func detach(ctx context.Context, out io.Writer, o upOptions) error {
	if _, err := cluster.Build(ctx, cluster.BuildOptions{Out: os.Stderr}); err != nil {
		return err
	}
	log, err := os.CreateTemp("", "nodemaint-cluster-*.log")
	if err != nil {
		return fmt.Errorf("making a log for the cluster in the background: %w", err)
	}
	defer os.Remove(log.Name())
	defer log.Close()
	if err := startChild(ctx, log, o); err != nil {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("starting cluster %s in the background: %w\n%s", o.name, err, strings.TrimSpace(string(said)))
	}
	s, err := find(o.name)
	if err != nil {
		return err
	}
	usage(out, s)
	fmt.Fprintf(os.Stderr, "Cluster %s runs in the background; end it with: down --name %s\n", o.name, o.name)
	return nil
}

// startChild returns when the child has said that its cluster is up, or has ended.
func startChild(ctx context.Context, log *os.File, o upOptions) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ready, childEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd := exec.Command(self, "up", "--name", o.name, "--nodes", strconv.Itoa(o.nodes),
		"--keep="+strconv.FormatBool(o.keep), "--ready-fd", strconv.Itoa(childReadyFD))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{childEnd}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = childEnd.Close()
	if err != nil {
		return err
	}
	interrupted := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer interrupted()
	word := make([]byte, len(readyWord))
	_, err = io.ReadFull(ready, word)
	if err == nil && string(word) == readyWord {
		return nil
	}
	return errors.Join(err, cmd.Wait())
}

// keepFromChildren closes a descriptor that we inherited to the cluster's parts: as
// long as one of them had it, a parent that reads it would not see our end.
func keepFromChildren(fd int) {
	if fd > 0 {
		syscall.CloseOnExec(fd)
	}
}

func sayReady(fd int) error {
	f := os.NewFile(uintptr(fd), "ready")
	if f == nil {
		return fmt.Errorf("--ready-fd %d: not open", fd)
	}
	_, err := f.WriteString(readyWord)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("saying that the cluster is up: %w", err)
	}
	return nil
}

// find returns the running cluster of a name.
func find(name string) (cluster.State, error) {
	all, err := cluster.Running()
	if err != nil {
		return cluster.State{}, err
	}
	var names []string
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return cluster.State{}, fmt.Errorf("no cluster %q: none is running", name)
	}
	return cluster.State{}, fmt.Errorf("no cluster %q; running: %s", name, strings.Join(names, ", "))
}

// logsOf returns the folder with the logs of a cluster.
func logsOf(s cluster.State) string { return filepath.Join(s.Dir, "logs") }
