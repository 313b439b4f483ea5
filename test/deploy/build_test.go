// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheImageIsBuiltAlike(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(Root(), "operator", "Dockerfile"))
	require.NoError(t, err)
	command := append([]string{"RUN", buildEnv, "go", "build", "-trimpath"}, buildFlags...)
	text := strings.ReplaceAll(strings.Join(command, " "), `-ldflags=-s -w`, `-ldflags="-s -w"`)
	require.Contains(t, string(file), text+" -o ")
}
