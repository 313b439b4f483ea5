// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The operator is built as for its image: what is tested and measured is what people run. Two things halve the program,
// and with it the memory that it takes. Without cgo the linker knows that no plugin can be loaded (kustomize, by way of kubectl,
// could load one), and the tag leaves out what grpc shows of itself by html/template, which finds methods by name. In
// either case the linker would have to keep the methods of all types.
const buildEnv = "CGO_ENABLED=0"

var buildFlags = []string{"-tags=grpcnotrace", "-ldflags=-s -w"}

// Build builds the operator into dir and returns the path of its program.
func Build(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "manager")
	args := append([]string{"build", "-o", program}, buildFlags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./operator/cmd/manager")...)
	cmd.Dir, cmd.Env = Root(), append(os.Environ(), buildEnv)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the operator: %w: %s", err, out)
	}
	return program, nil
}
