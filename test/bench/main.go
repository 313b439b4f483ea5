// SPDX-License-Identifier: Apache-2.0

// Command bench measures the operator beside its peers on a real control plane, and writes docs/benchmarks.md.
//
//	bench [-w W1,W3] [-only NAME] [-requests]
//
// It ends with exit code 1 if a target is missed that docs/benchmarks/notes.yaml does not explain.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nodemaint/nodemaint/test/bench/report"
	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
	"github.com/nodemaint/nodemaint/test/program"
)

func main() { program.Main("bench", runBench) }

// bench is what all workloads need.
type bench struct {
	program  string // the operator
	peer     string // the program of the library loop and of the limit
	binaries cluster.Binaries
	dir      string // for files that nobody needs afterwards
	tell     *progress
	only     string // if not empty, only contenders whose name contains it
	requests bool   // print each contender's requests by kind
}

func runBench(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	which := f.String("w", "", "the workloads, separated by commas; all if empty:\n"+listed())
	only := f.String("only", "", "of W1, W3 and W4, only the contenders whose name contains this; nothing is judged or kept")
	requests := f.Bool("requests", false, "of W1, W3 and W4, print the requests of each contender by kind")
	if err := f.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*which)
	if err != nil {
		return err
	}
	b := &bench{only: *only, requests: *requests}
	if b.dir, err = os.MkdirTemp("", "nodemaint-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.binaries, err = cluster.Build(ctx, cluster.BuildOptions{Out: os.Stderr}); err != nil {
		return err
	}
	if b.program, err = deploy.Build(ctx, b.dir); err != nil {
		return err
	}
	if b.peer, err = buildPeer(ctx, b.dir); err != nil {
		return err
	}
	run, err := describe(ctx, *which)
	if err != nil {
		return err
	}
	return b.all(ctx, chosen, run, report.Dir(filepath.Join(deploy.Root(), "docs")))
}

// all measures the workloads one after another. One that cannot be measured does not keep the others from it.
func (b *bench) all(ctx context.Context, chosen []workload, run report.Run, docs report.Dir) error {
	var sections []report.Section
	var errs error
	b.tell = newProgress(os.Stderr, chosen)
	for _, w := range chosen {
		if ctx.Err() != nil {
			break
		}
		b.tell.workload(w)
		s, err := w.kind.measure(ctx, b)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("workload %s: %w", w.name, err))
			continue
		}
		s.Workload, s.Title, s.Run = w.name, w.title, run
		sections = append(sections, s)
		if b.only == "" {
			errs = errors.Join(errs, docs.Save(s))
		}
	}
	b.tell.close()
	errs = errors.Join(errs, context.Cause(ctx))
	for _, s := range sections {
		fmt.Printf("\n%s: %s\n\n%s", s.Workload, s.Title, s.Table())
	}
	if b.only != "" {
		return errs
	}
	return errors.Join(errs, docs.Render(), judge(sections, docs))
}

// judge prints which targets are met, and returns an error if one is missed without an explanation.
func judge(sections []report.Section, docs report.Dir) error {
	notes, err := docs.Notes()
	if err != nil {
		return err
	}
	fmt.Printf("\n%s\nThe tables, and what stands in the way of a target, are in docs/benchmarks.md.\n", report.Summary(sections, notes))
	if failed := report.Failed(sections, notes); len(failed) > 0 {
		return fmt.Errorf("missed, and not explained in docs/benchmarks/notes.yaml:\n  %s", strings.Join(failed, "\n  "))
	}
	return nil
}

// buildPeer builds the program of the library loop and of the limit into dir, and returns its path.
func buildPeer(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "peer")
	_, err := output(ctx, filepath.Join(deploy.Root(), "test"), "go", "build", "-o", program, "./bench/peer")
	return program, err
}
