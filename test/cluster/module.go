// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// componentsModule pins the versions of all binaries in a go.mod of its own, so
// that whoever imports this package does not inherit Kubernetes' requirements.
const componentsModule = "github.com/nodemaint/nodemaint/test/cluster/components"

// packageModule is the module of this package; the components lie in a folder of it.
const packageModule = "github.com/nodemaint/nodemaint/test/cluster"

// componentsDir finds the folder of componentsModule: beside this source file, or,
// if the binary was built with -trimpath, where the go command knows the module.
func componentsDir(ctx context.Context) (string, error) {
	_, source, _, _ := runtime.Caller(0)
	tried := []string{}
	if filepath.IsAbs(source) {
		tried = append(tried, filepath.Join(filepath.Dir(source), "components"))
	}
	if dir, err := moduleDir(ctx, packageModule); err == nil {
		tried = append(tried, filepath.Join(dir, "components"))
	}
	if dir, err := moduleDir(ctx, componentsModule); err == nil {
		tried = append(tried, dir)
	}
	for _, dir := range tried {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("finding the module %s that pins the Kubernetes binaries: no go.mod in %q; "+
		"run from a checkout of the repository", componentsModule, tried)
}

func moduleDir(ctx context.Context, module string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("asking go for the folder of module %s: %w", module, err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", fmt.Errorf("asking go for the folder of module %s: not downloaded", module)
	}
	return dir, nil
}

// goToolchain asks the go command, in dir, which toolchain it would build with.
func goToolchain(ctx context.Context, dir string) (toolchain, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH")
	cmd.Dir = dir
	cmd.Env = buildEnv()
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return toolchain{}, fmt.Errorf("building the Kubernetes binaries needs the go command: %w", err)
	}
	if err != nil {
		return toolchain{}, fmt.Errorf("asking go for its version in %s: %w", dir, withStderr(err))
	}
	fields := strings.Fields(string(out))
	if len(fields) != 3 {
		return toolchain{}, fmt.Errorf("asking go for its version in %s: unexpected answer %q", dir, out)
	}
	return toolchain{Version: fields[0], OS: fields[1], Arch: fields[2]}, nil
}

// buildEnv is the environment of every go command here. CGO is off so that no C
// compiler is needed, and a workspace file must not change the pinned versions.
func buildEnv() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
}

// withStderr adds what a failed command said to its error.
func withStderr(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
