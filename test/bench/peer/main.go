// SPDX-License-Identifier: Apache-2.0

// Command peer is what the operator is compared with, as a program of its own, so that its memory and CPU are not
// the benchmark's:
//
//	peer loop --kubeconfig=FILE --nodes=A,B                                 drains nodes with kubectl's library
//	peer limit --kubeconfig=FILE --nodes=A,B [--in-flight=64|--per-budget]  only posts the evictions
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say loop or limit")
	}
	f := flag.NewFlagSet("peer", flag.ContinueOnError)
	config := f.String("kubeconfig", "", "how to reach the cluster")
	nodes := f.String("nodes", "", "the nodes to drain, separated by commas")
	flying := f.Int("in-flight", 64, "evictions under way at once")
	perBudget := f.Bool("per-budget", false, "one under way for each budget instead")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	c, err := connect(*config)
	if err != nil {
		return err
	}
	names := strings.Split(*nodes, ",")
	switch args[0] {
	case "loop":
		return runLoop(ctx, c, names)
	case "limit":
		return runLimit(ctx, c, names, *flying, *perBudget)
	}
	return fmt.Errorf("%q is neither loop nor limit", args[0])
}

func connect(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}

func pauseUntil(ctx context.Context, due time.Time) error {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
