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
	"sync"

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
	dir      string  // for files that nobody needs afterwards
	tell     *teller // of one workload
	only     string  // if not empty, only contenders whose name contains it
	requests bool    // print each contender's requests by kind
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

// all measures the workloads turn by turn. One that cannot be measured does not keep the others from it.
func (b *bench) all(ctx context.Context, chosen []workload, run report.Run, docs report.Dir) error {
	measured, errs := make([]report.Section, len(chosen)), make([]error, len(chosen))
	tell := newProgress(os.Stderr)
	for turn := range turns {
		var all sync.WaitGroup
		for i, w := range chosen {
			if turn+1 != w.turn || ctx.Err() != nil {
				continue
			}
			all.Go(func() {
				s, err := b.one(ctx, w, tell)
				s.Run, s.How = run, s.How+beside(w, chosen)
				if err == nil && b.only == "" {
					err = docs.Save(s)
				}
				measured[i], errs[i] = s, err
			})
		}
		all.Wait()
	}
	tell.close()
	var sections []report.Section
	for i, s := range measured {
		if errs[i] != nil || s.Workload == "" {
			continue
		}
		sections = append(sections, s)
		fmt.Printf("\n%s: %s\n\n%s", s.Workload, s.Title, s.Table())
	}
	err := errors.Join(append(errs, context.Cause(ctx))...)
	if b.only != "" {
		return err
	}
	return errors.Join(err, docs.Render(), judge(sections, docs))
}

// one measures one workload.
func (b *bench) one(ctx context.Context, w workload, p *progress) (report.Section, error) {
	mine := *b
	mine.tell = p.of(w)
	s, err := w.kind.measure(ctx, &mine)
	mine.tell.end(err)
	if err != nil {
		return s, fmt.Errorf("workload %s: %w", w.name, err)
	}
	s.Workload, s.Title = w.name, w.title
	return s, nil
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
