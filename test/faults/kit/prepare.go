// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// SeedFlag describes the flag by which what happens at random can be had again.
const SeedFlag = "what happens at random depends on this `number`; one that is made up if not given"

// RandomSeed returns a seed to begin with.
func RandomSeed() uint64 { return rand.Uint64() } //nolint:gosec // nothing is secret

// Prepare builds what a stage needs: the control plane, and the operator into dir, which must be there. It says what
// the seed is.
func Prepare(ctx context.Context, dir string, seed uint64) (Options, error) {
	o := Options{Dir: dir, Seed: seed}
	var err error
	if o.Binaries, err = cluster.Build(ctx, cluster.BuildOptions{Out: os.Stderr}); err != nil {
		return o, err
	}
	if o.Program, err = deploy.Build(ctx, dir); err != nil {
		return o, err
	}
	fmt.Fprintf(os.Stderr, "What happens at random comes from -seed %d.\n", seed)
	return o, nil
}

// SayTo returns what says lines to people, each with the time since now in front.
func SayTo(out *os.File) func(format string, args ...any) {
	began := time.Now()
	return func(format string, args ...any) {
		fmt.Fprintf(out, "%6s  %s\n", time.Since(began).Round(time.Second), fmt.Sprintf(format, args...))
	}
}
