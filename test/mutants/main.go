// SPDX-License-Identifier: Apache-2.0

// Mutants puts bugs into the packages, one at a time, and says which test catches each. It ends with status 1 if one
// is caught by none. No file is changed: the compiler is shown another text in its place.
package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/nodemaint/nodemaint/test/program"
)

func main() {
	program.Main("mutants", func(ctx context.Context, _ []string) error {
		root, err := filepath.Abs("..") // go run keeps the folder it was started in, the module's
		if err != nil {
			return err
		}
		return run(ctx, root)
	})
}

// run tries every mutant and prints a table. Errors: the first of what went wrong otherwise than that a test failed.
func run(ctx context.Context, root string) error {
	if err := healthy(ctx, root); err != nil {
		return err
	}
	const row = "%-58s %-26s %s\n"
	fmt.Printf(row, "BUG", "IN", "CAUGHT BY")
	var failed error
	for _, m := range mutants {
		test, err := m.caughtBy(ctx, root)
		if err != nil {
			test = "nothing: " + err.Error()
			failed = fmt.Errorf("%q is not caught", m.bug)
		}
		fmt.Printf(row, m.bug, m.file, test)
	}
	return failed
}

// healthy says whether all tests pass as things are: one that fails anyway catches nothing.
func healthy(ctx context.Context, root string) error {
	var seen []string
	for _, m := range mutants {
		if slices.Contains(seen, m.tests) {
			continue
		}
		seen = append(seen, m.tests)
		test, err := firstFailure(ctx, root, m.tests)
		if err != nil {
			return err
		}
		if test != "" {
			return fmt.Errorf("%s fails in %s without any mutant", test, m.tests)
		}
	}
	return nil
}
