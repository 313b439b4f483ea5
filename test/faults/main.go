// SPDX-License-Identifier: Apache-2.0

// Command faults lets one thing after another go wrong while nodes of a real control plane are maintained, and
// checks the invariants of package invariant each time.
//
//	faults [-f NAME,NAME] [-seed N]
//
// It ends with exit code 1 if anything is broken. The logs then stay, and it says where.
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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if err := runFaults(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func runFaults(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("faults", flag.ContinueOnError)
	which := f.String("f", "", "the faults, separated by commas; all if empty:\n"+listed())
	seed := f.Uint64("seed", rand.Uint64(), "what happens at random depends on this `number`; one that is made up if not given") //nolint:gosec // nothing is secret
	if err := f.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*which)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "nodemaint-faults-")
	if err != nil {
		return err
	}
	r := &runner{began: time.Now(), out: os.Stderr, options: kit.Options{Dir: dir, Seed: *seed}}
	r.options.Say = r.say
	if r.options.Binaries, err = cluster.Build(ctx, cluster.BuildOptions{Out: os.Stderr}); err != nil {
		return err
	}
	if r.options.Program, err = deploy.Build(ctx, dir); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "What happens at random comes from -seed %d.\n", *seed)
	results := r.all(ctx, chosen)
	fmt.Printf("\n%s", table(results))
	if err := judge(results, len(chosen)); err != nil {
		return fmt.Errorf("%w\nThe logs are in %s.", err, filepath.Clean(dir)) //nolint:staticcheck // the last words
	}
	return os.RemoveAll(dir)
}
