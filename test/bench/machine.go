// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/nodemaint/nodemaint/test/bench/report"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// describe says when, where and with what the benchmark runs. Nothing in it names the machine or its owner.
func describe(ctx context.Context, which string) (report.Run, error) {
	machine, err := machine(ctx)
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

func machine(ctx context.Context) (string, error) {
	info, err := cpu.InfoWithContext(ctx)
	if err != nil {
		return "", err
	}
	model := "unknown CPU"
	if len(info) > 0 && info[0].ModelName != "" {
		model = info[0].ModelName
	}
	memory, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return "", err
	}
	kernel, err := host.KernelVersionWithContext(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %d cores, %d GiB, %s %s", model, runtime.NumCPU(), memory.Total>>30, runtime.GOOS, kernel), nil
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
