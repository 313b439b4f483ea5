// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/nodemaint/nodemaint/test/bench/report"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// describe says when, where and with what the benchmark runs. Nothing in it names the machine or its owner.
func describe(ctx context.Context, which string) (report.Run, error) {
	machine, err := machine()
	if err != nil {
		return report.Run{}, fmt.Errorf("looking at the machine: %w", err)
	}
	commit, err := output(ctx, deploy.Root(), "git", "describe", "--always", "--dirty", "--exclude=*")
	if err != nil {
		return report.Run{}, err
	}
	components, err := output(ctx, filepath.Join(deploy.Root(), "test", "cluster", "components"),
		"go", "list", "-m", "-f", "{{.Path}} {{.Version}}", "k8s.io/kubernetes", "sigs.k8s.io/kwok", "go.etcd.io/etcd/server/v3")
	if err != nil {
		return report.Run{}, err
	}
	command := "make bench"
	if which != "" {
		command += " W=" + which
	}
	return report.Run{
		Date: time.Now().UTC().Format("2006-01-02"), Command: command, Commit: commit, Machine: machine,
		Versions: append([]string{strings.Replace(runtime.Version(), "go", "Go ", 1)}, strings.Split(components, "\n")...),
	}, nil
}

func machine() (string, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return "", err
	}
	cpus, err := proc.CPUInfo()
	if err != nil {
		return "", err
	}
	model := "unknown CPU"
	if len(cpus) > 0 && cpus[0].ModelName != "" {
		model = cpus[0].ModelName
	}
	memory, err := proc.Meminfo()
	if err != nil {
		return "", err
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %d cores, %d GiB, Linux %s", model, runtime.NumCPU(), *memory.MemTotalBytes>>30, strings.TrimSpace(string(kernel))), nil
}

func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running %s %s: %w", name, args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
