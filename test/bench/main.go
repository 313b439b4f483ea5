// SPDX-License-Identifier: Apache-2.0

// Command bench drains the same nodes with this project and with its peers, each on a real control plane of its
// own, and compares what that takes.
//
//	bench [-w W1,W3] [-only NAME] [-requests]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/nodemaint/nodemaint/test/deploy"
)

// workloads are what is drained. In each, up to 10 Deployments have a budget of their own that lets half of
// their pods go, and a pod takes a second to go.
var workloads = map[string]load{
	"W1": {nodes: 20, perNode: 10, daemonSets: 5},
	"W3": {nodes: 1, perNode: 300, daemonSets: 5},
	"W4": {nodes: 200, perNode: 20, daemonSets: 5},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctrl.SetLogger(logr.Discard())
	var err error
	if len(os.Args) > 2 && os.Args[1] == "peer" {
		err = runPeer(ctx, os.Args[2], os.Args[3:])
	} else {
		err = runBench(ctx, os.Args[1:])
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func runPeer(ctx context.Context, what string, args []string) error {
	f := flag.NewFlagSet("peer", flag.ContinueOnError)
	config := f.String("kubeconfig", "", "how to reach the cluster")
	nodes := f.String("nodes", "", "the nodes to drain, separated by commas")
	flying := f.Int("in-flight", 64, "evictions under way at once")
	perBudget := f.Bool("per-budget", false, "one under way for each budget instead")
	if err := f.Parse(args); err != nil {
		return err
	}
	names := strings.Split(*nodes, ",")
	if what == "loop" {
		return runLoop(ctx, *config, names)
	}
	return runLimit(ctx, *config, names, *flying, *perBudget)
}

func runBench(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	which := f.String("w", "W1,W3", "the workloads, separated by commas: W1, W3, W4")
	only := f.String("only", "", "only the contenders whose name contains this")
	requests := f.Bool("requests", false, "print the requests of each contender by kind")
	if err := f.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "nodemaint-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := deploy.Build(ctx, dir)
	if err != nil {
		return err
	}
	all := slices.DeleteFunc([]contender{ours(program), kubectl(), libraryLoop(), limit64(), limitPerBudget()},
		func(c contender) bool { return !strings.Contains(c.name, *only) })
	for _, name := range strings.Split(*which, ",") {
		l, ok := workloads[name]
		if !ok {
			return fmt.Errorf("there is no workload %q: there are W1, W3 and W4", name)
		}
		if err := compare(ctx, name, l, all, *requests); err != nil {
			return fmt.Errorf("workload %s: %w", name, err)
		}
	}
	return nil
}

// compare lets each contender drain the load and prints a table of what that took.
func compare(ctx context.Context, name string, l load, all []contender, requests bool) error {
	var results []result
	for _, c := range all {
		fmt.Fprintf(os.Stderr, "%s: %s drains %d nodes of %d pods\n", name, c.name, l.nodes, l.perNode)
		r, err := race(ctx, l, c)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	fmt.Print(table(name, l, results))
	if requests {
		for _, r := range results {
			fmt.Print(r.byKind())
		}
	}
	return nil
}
