// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuildKey(t *testing.T) {
	const mod = "module x\n\nrequire a v1 // indirect\n"
	tc := toolchain{Version: "go1.26.0", OS: "linux", Arch: "amd64"}
	base := buildKey([]byte(mod), tc, []string{"-trimpath"})
	tests := map[string]struct {
		reason string
		mod    string
		tc     toolchain
		flags  []string
		same   bool
	}{
		"comment": {
			reason: "a comment or blank line does not change what is built",
			mod:    "// words\nmodule x\nrequire   a v1\n", tc: tc, flags: []string{"-trimpath"}, same: true,
		},
		"version": {
			reason: "another version of a module is another binary",
			mod:    "module x\n\nrequire a v2\n", tc: tc, flags: []string{"-trimpath"},
		},
		"toolchain": {
			reason: "another Go builds another binary",
			mod:    mod, tc: toolchain{Version: "go1.27.0", OS: "linux", Arch: "amd64"}, flags: []string{"-trimpath"},
		},
		"platform": {
			reason: "a cache shared between platforms must not mix them",
			mod:    mod, tc: toolchain{Version: "go1.26.0", OS: "linux", Arch: "arm64"}, flags: []string{"-trimpath"},
		},
		"flags": {
			reason: "the flags decide the version that is linked in",
			mod:    mod, tc: tc, flags: []string{"-trimpath", "-race"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := buildKey([]byte(tt.mod), tt.tc, tt.flags)
			require.Equal(t, tt.same, got == base, tt.reason)
			require.Regexp(t, `^v1\.37\.2-[0-9a-f]{12}$`, got, "the folder's name is readable and short")
		})
	}
}

func TestBuildFlagsNameTheVersion(t *testing.T) {
	require.Equal(t, "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2"+
		" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37",
		buildFlags()[3], "kubectl version and the API server's discovery show it")
}
