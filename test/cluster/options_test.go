// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOptionsComplete(t *testing.T) {
	tests := map[string]struct {
		reason string
		in     Options
		err    string
	}{
		"zero":           {reason: "the zero value works", in: Options{}},
		"name":           {reason: "a plain name works", in: Options{Name: "my-cluster-2"}},
		"path in a name": {reason: "a name must not lead out of the run folder", in: Options{Name: "../x"}, err: "cluster name"},
		"hidden name":    {reason: "a name must not hide its folder", in: Options{Name: ".x"}, err: "cluster name"},
		"long name":      {reason: "a name is at most 63 long", in: Options{Name: strings.Repeat("a", 64)}, err: "cluster name"},
		"audit level":    {reason: "the API server would refuse it later", in: Options{AuditLevel: "all"}, err: "audit level"},
		"verbosity":      {reason: "there is no negative verbosity", in: Options{Verbosity: -1}, err: "verbosity"},
		"start timeout":  {reason: "there is no negative time", in: Options{StartTimeout: -1}, err: "start timeout"},
		"data":           {reason: "an empty cluster would come up without a word", in: Options{Data: "some/where"}, err: `data "some/where"`},
		"extra flags": {
			reason: "flags for a part that does not exist would be lost without a word",
			in:     Options{ExtraFlags: map[Component][]string{"apiserver": {"--x"}}}, err: "extra flags",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tt.in.complete()
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err, tt.reason)
				return
			}
			require.NoError(t, err, tt.reason)
			require.Equal(t, "Metadata", got.AuditLevel)
			require.Equal(t, time.Minute, got.StartTimeout)
		})
	}
}

func TestOptionsDirStays(t *testing.T) {
	got, err := Options{Dir: "some/where"}.complete()
	require.NoError(t, err)
	require.True(t, got.Keep, "we remove only folders that we made up ourselves")
	require.True(t, filepath.IsAbs(got.Dir), "components run in another working directory")
}

func TestArgs(t *testing.T) {
	o, err := Options{Verbosity: 4, ExtraFlags: map[Component][]string{APIServer: {"--profiling=false"}}}.complete()
	require.NoError(t, err)
	p := ports{1, 2, 3, 4, 5, 6}
	l := layout{"/d"}
	for _, c := range Components() {
		args := l.args(c, p, o)
		require.NotRegexp(t, `[=/]0\.0\.0\.0`, strings.Join(args, " "), "%s listens on loopback only", c)
		require.NotContains(t, strings.Join(args, " "), "http://", "%s speaks TLS", c)
	}
	api := l.args(APIServer, p, o)
	require.Equal(t, "--profiling=false", api[len(api)-1], "extra flags come last, so that they win")
	require.Contains(t, api, "--v=4")
	require.Contains(t, api, "--authorization-mode=RBAC")
	require.NotContains(t, l.args(Etcd, p, o), "--v=4", "etcd knows no --v")
}
