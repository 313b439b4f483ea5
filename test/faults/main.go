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
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/nodemaint/nodemaint/test/faults/kit"
	"github.com/nodemaint/nodemaint/test/program"
)

func main() { program.Main("faults", runFaults) }

func runFaults(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("faults", flag.ContinueOnError)
	which := f.String("f", "", "the faults, separated by commas; all if empty:\n"+listed())
	seed := f.Uint64("seed", kit.RandomSeed(), kit.SeedFlag)
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
	r := &runner{began: time.Now(), out: os.Stderr}
	if r.options, err = kit.Prepare(ctx, dir, *seed); err != nil {
		return err
	}
	r.options.Say = r.say
	results := r.all(ctx, chosen)
	fmt.Printf("\n%s", table(results))
	if err := judge(results, len(chosen)); err != nil {
		return fmt.Errorf("%w\nThe logs are in %s.", err, dir) //nolint:staticcheck // the last words
	}
	return os.RemoveAll(dir)
}
