// SPDX-License-Identifier: Apache-2.0

package nodemaint_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/nodemaint/nodemaint/"

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Imports    []string // its own
	Deps       []string // those of its imports too
}

// TestWhoImportsWhom keeps dependencies pointing one way. It looks at imports of imports as well, which a
// linter that reads one file at a time cannot see.
func TestWhoImportsWhom(t *testing.T) {
	seeSources(t)
	for _, tc := range []struct {
		reason   string
		packages string
		except   []string // prefixes of packages that may
		own      bool     // look at a package's own imports only
		allowed  []string // if set, nothing else, the standard library apart
		denied   []string
	}{
		{
			reason:   "a client of the resource gets apimachinery with its types and nothing else",
			packages: "./apis/...", own: true, allowed: []string{"k8s.io/apimachinery/"},
		},
		{
			reason:   "and nothing else by way of apimachinery",
			packages: "./apis/...", denied: []string{"k8s.io/api/", "k8s.io/client-go/", "sigs.k8s.io/controller-runtime", module + "maintenance"},
		},
		{
			reason:   "the library knows neither the resource nor a framework of controllers",
			packages: "./taint ./lease ./drainer ./maintenance/... ./internal/...",
			denied:   []string{"sigs.k8s.io/controller-runtime", module + "apis", module + "operator"},
		},
		{
			reason:   "taint stands alone",
			packages: "./taint", denied: []string{module, "k8s.io/kubectl"},
		},
		{
			reason:   "lease stands alone",
			packages: "./lease", denied: []string{module + "taint", module + "drainer", module + "maintenance", "k8s.io/kubectl"},
		},
		{
			reason:   "drainer stands alone",
			packages: "./drainer", denied: []string{module + "taint", module + "lease", module + "maintenance"},
		},
		{
			reason:   "a rule of the domain cannot leak into the operator",
			packages: "./operator/...", own: true, except: []string{module + "operator/cmd/", module + "operator/quorum"},
			denied: []string{"k8s.io/api/policy/", "k8s.io/api/coordination/", "k8s.io/kubectl", module + "taint", module + "lease", module + "drainer"},
		},
		{
			reason:   "the check of etcd reads budgets and knows no more of the domain",
			packages: "./operator/quorum", denied: []string{module + "taint", module + "lease", module + "drainer", module + "maintenance", "k8s.io/kubectl"},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			for _, p := range list(t, strings.Fields(tc.packages)) {
				if hasPrefix(p.ImportPath, tc.except) {
					continue
				}
				imports := p.Deps
				if tc.own {
					imports = p.Imports
				}
				for _, path := range imports {
					require.False(t, path != p.ImportPath && hasPrefix(path, tc.denied), "%s imports %s", p.ImportPath, path)
					outside := strings.Contains(strings.Split(path, "/")[0], ".")
					require.False(t, tc.allowed != nil && outside && !hasPrefix(path, tc.allowed), "%s imports %s", p.ImportPath, path)
				}
			}
		})
	}
}

func hasPrefix(path string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}

func list(t *testing.T, patterns []string) []listed {
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Imports,Deps"}, patterns...)...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		require.NoError(t, err, string(exit.Stderr))
	}
	require.NoError(t, err)
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		all = append(all, p)
	}
	require.NotEmpty(t, all, "go list found nothing for %s", patterns)
	return all
}

// seeSources looks at every source file, so that go test does not take an old result for this one: of what
// go list reads it knows nothing.
func seeSources(t *testing.T) {
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".go" {
			_, err = os.Stat(path)
		}
		return err
	}))
}
