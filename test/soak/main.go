// SPDX-License-Identifier: Apache-2.0

// Command soak maintains 50 nodes at random, with faults, for a long time. Memory, goroutines and watches of the
// operator must not grow, and no invariant may be broken.
//
//	soak [-for 10m] [-seed N]
//
// It ends with exit code 1 otherwise; the logs then stay, and it says where. A run of at least ten minutes writes
// its section of docs/reliability.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nodemaint/nodemaint/test/deploy"
	"github.com/nodemaint/nodemaint/test/faults/kit"
	"github.com/nodemaint/nodemaint/test/program"
)

// worthKeeping is how long a run takes at least whose table is kept.
const worthKeeping = 10 * time.Minute

func main() { program.Main("soak", runSoak) }

func runSoak(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	length := f.Duration("for", worthKeeping, "how long")
	seed := f.Uint64("seed", kit.RandomSeed(), kit.SeedFlag)
	if err := f.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "nodemaint-soak-")
	if err != nil {
		return err
	}
	o, err := kit.Prepare(ctx, dir, *seed)
	if err != nil {
		return err
	}
	o.Dir, o.Say = filepath.Join(dir, "stage"), kit.SayTo(os.Stderr)
	r, err := soak(ctx, o, *length)
	fmt.Printf("\n%s", r.page())
	if err == nil {
		err = errors.Join(r.judge()...)
	}
	if err != nil {
		return fmt.Errorf("%w\nThe logs are in %s.", err, dir) //nolint:staticcheck // the last words
	}
	if *length >= worthKeeping {
		if err := keep(filepath.Join(deploy.Root(), "docs", "reliability.md"), r.page()); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// keep puts the section into the file.
func keep(path, section string) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := insert(string(document), section)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(changed), 0o600)
}
