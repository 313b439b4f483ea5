// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// event is what go test -json says of a test, or of a package if Test is empty.
type event struct {
	Action, Test, Output, FailedBuild string
}

// firstFailure runs the tests of a package and returns the name of the first that fails; none if all pass. Errors: the
// tests could not be built, or failed in no test.
func firstFailure(ctx context.Context, root, tests string, flags ...string) (string, error) {
	args := append([]string{"test", "-json", "-failfast", "-vet=off", "-timeout=5m"}, append(flags, tests)...)
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = root
	c.Env = append(os.Environ(), "RAPID_SHRINKTIME=0s", "RAPID_NOFAILFILE=true") // that it fails is enough
	var says bytes.Buffer
	c.Stderr = &says
	out, ran := c.Output()
	test, err := failure(out)
	switch {
	case err != nil:
		return "", err
	case ran != nil && test == "":
		return "", fmt.Errorf("testing %s: %w, in no test: %s", tests, ran, says.String())
	}
	return test, nil
}

// failure finds the first test that failed in the output of go test -json.
func failure(out []byte) (string, error) {
	var said strings.Builder
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var e event
		err := d.Decode(&e)
		switch {
		case errors.Is(err, io.EOF):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("reading what go test says: %w", err)
		case e.FailedBuild != "":
			return "", fmt.Errorf("it does not compile: %s", said.String())
		case e.Action == "build-output":
			said.WriteString(e.Output)
		case e.Action == "fail" && e.Test != "":
			test, _, _ := strings.Cut(e.Test, "/")
			return test, nil
		}
	}
}
