// SPDX-License-Identifier: Apache-2.0

// Command soak maintains 50 nodes at random, with faults, for a long time. Memory, goroutines and watches of the
// operator must not grow, and no invariant may be broken.
//
//	soak [-for 10m] [-seed N]
//
// It ends with exit code 1 otherwise; the logs then stay, and it says where. A run of at least ten minutes writes
// docs/soak.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
	"github.com/nodemaint/nodemaint/test/faults/kit"
)

// worthKeeping is how long a run takes at least whose table is kept.
const worthKeeping = 10 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if err := runSoak(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func runSoak(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	length := f.Duration("for", worthKeeping, "how long")
	seed := f.Uint64("seed", rand.Uint64(), "what happens at random depends on this `number`; one that is made up if not given") //nolint:gosec // nothing is secret
	if err := f.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "nodemaint-soak-")
	if err != nil {
		return err
	}
	began := time.Now()
	o := kit.Options{Dir: filepath.Join(dir, "stage"), Seed: *seed, Say: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%6s  %s\n", time.Since(began).Round(time.Second), fmt.Sprintf(format, args...))
	}}
	if o.Binaries, err = cluster.Build(ctx, cluster.BuildOptions{Out: os.Stderr}); err != nil {
		return err
	}
	if o.Program, err = deploy.Build(ctx, dir); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "What happens at random comes from -seed %d.\n", *seed)
	r, err := soak(ctx, o, *length)
	fmt.Printf("\n%s", r.page())
	if err == nil {
		err = errors.Join(r.judge()...)
	}
	if err != nil {
		return fmt.Errorf("%w\nThe logs are in %s.", err, dir) //nolint:staticcheck // the last words
	}
	if *length >= worthKeeping {
		if err := os.WriteFile(filepath.Join(deploy.Root(), "docs", "soak.md"), []byte(r.page()), 0o600); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}
