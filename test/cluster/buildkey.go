// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// KubernetesVersion is the release that the control plane and kubectl are built from.
const KubernetesVersion = "v1.37.2"

// buildFlags are the arguments of every go build, but for output and package.
// The version is linked in because a build from a module knows no git tag, and
// the API server would otherwise call itself v0.0.0-master.
func buildFlags() []string {
	const version = "k8s.io/component-base/version."
	number := strings.SplitN(strings.TrimPrefix(KubernetesVersion, "v"), ".", 3)
	return []string{
		"-mod=readonly", "-trimpath", "-ldflags",
		fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s",
			version, KubernetesVersion, version, number[0], version, number[1]),
	}
}

// toolchain is what besides the modules decides what a build yields.
type toolchain struct {
	Version, OS, Arch string
}

// buildKey names the cache folder of a set of binaries: it changes when a module's
// version, the Go toolchain, the platform or a flag does, and not with a comment.
func buildKey(goMod []byte, tc toolchain, flags []string) string {
	h := sha256.New()
	for line := range bytes.Lines(goMod) {
		if i := bytes.Index(line, []byte("//")); i >= 0 {
			line = line[:i]
		}
		if fields := bytes.Fields(line); len(fields) > 0 {
			fmt.Fprintf(h, "%s\n", bytes.Join(fields, []byte(" ")))
		}
	}
	fmt.Fprintf(h, "%q\n%q\n", tc, flags)
	return KubernetesVersion + "-" + hex.EncodeToString(h.Sum(nil))[:12]
}
