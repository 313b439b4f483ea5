// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant is a bug: in a file, what stands there instead of what should.
type mutant struct {
	bug   string
	file  string // from the root of the repository
	was   string // stands in the file exactly once
	is    string
	tests string // the package whose tests must catch it
}

// errSurvived is what to say of a mutant that no test minds.
var errSurvived = errors.New("every test passes")

// caughtBy returns the name of the test that fails with the mutant.
func (m mutant) caughtBy(ctx context.Context, root string) (string, error) {
	folder, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	overlay, err := m.overlay(root, folder)
	if err != nil {
		return "", err
	}
	test, err := firstFailure(ctx, root, m.tests, "-overlay="+overlay)
	if err == nil && test == "" {
		err = errSurvived
	}
	return test, err
}

// overlay writes the mutated file into folder, and beside it what tells the compiler to take it; it returns the name
// of the latter.
func (m mutant) overlay(root, folder string) (string, error) {
	file := filepath.Join(root, filepath.FromSlash(m.file))
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	mutated, err := m.apply(string(b))
	if err != nil {
		return "", err
	}
	instead := filepath.Join(folder, filepath.Base(file))
	b, err = json.Marshal(map[string]map[string]string{"Replace": {file: instead}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, errors.Join(os.WriteFile(instead, []byte(mutated), 0o600), os.WriteFile(overlay, b, 0o600))
}

func (m mutant) apply(text string) (string, error) {
	if n := strings.Count(text, m.was); n != 1 {
		return "", fmt.Errorf("what it replaces is %d times in %s", n, m.file)
	}
	return strings.Replace(text, m.was, m.is, 1), nil
}
