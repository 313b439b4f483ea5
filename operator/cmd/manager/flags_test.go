// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDefaults(t *testing.T) {
	f, err := parseFlags(nil)
	require.NoError(t, err)
	require.Equal(t, ":8443", f.metricsAddress)
	require.Equal(t, ":8081", f.probeAddress)
	require.False(t, f.leaderElect)
	require.False(t, f.http2)
	require.True(t, f.webhooks)
	require.Equal(t, 9443, f.webhookPort)
	require.Empty(t, f.webhookCertDir)
	require.Equal(t, 20, f.maxConcurrentReconciles)
}

func TestParseFlags(t *testing.T) {
	good := t.TempDir()
	for _, name := range []string{"tls.crt", "tls.key"} {
		require.NoError(t, os.WriteFile(filepath.Join(good, name), nil, 0o600))
	}
	for _, tc := range []struct {
		reason  string
		args    []string
		wantErr []string
	}{
		{reason: "all servers off or anywhere", args: []string{"--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0"}},
		{reason: "an IPv6 address", args: []string{"--metrics-bind-address", "[::1]:8443"}},
		{reason: "a folder with a pair", args: []string{"--webhook-cert-dir=" + good}},
		{reason: "an address without a port", args: []string{"--metrics-bind-address=foo"}, wantErr: []string{`--metrics-bind-address is "foo": it must be host:port`}},
		{reason: "an empty address is no way to switch off", args: []string{"--health-probe-bind-address="}, wantErr: []string{`--health-probe-bind-address is ""`}},
		{reason: "a port that is none", args: []string{"--health-probe-bind-address=:99999"}, wantErr: []string{"the port must be from 0 to 65535"}},
		{reason: "a port that is a word", args: []string{"--health-probe-bind-address=:http"}, wantErr: []string{"the port must be from 0 to 65535"}},
		{reason: "the webhook's port is registered by number", args: []string{"--webhook-port=0"}, wantErr: []string{"--webhook-port is 0: it must be from 1 to 65535"}},
		{reason: "the webhook's port is too large", args: []string{"--webhook-port=65536"}, wantErr: []string{"--webhook-port is 65536"}},
		{reason: "nobody works", args: []string{"--max-concurrent-reconciles=-1"}, wantErr: []string{"--max-concurrent-reconciles is -1: it must be at least 1"}},
		{reason: "a folder without a pair", args: []string{"--webhook-cert-dir=" + t.TempDir()}, wantErr: []string{"--webhook-cert-dir is", "looking for tls.crt"}},
		{reason: "every mistake is told at once", args: []string{"--webhook-port=0", "--max-concurrent-reconciles=0"}, wantErr: []string{"--webhook-port", "--max-concurrent-reconciles"}},
		{reason: "an argument that is no flag", args: []string{"run"}, wantErr: []string{`"run" is not a flag`}},
		{reason: "an unknown flag", args: []string{"--nope"}, wantErr: []string{"nope"}},
		{reason: "no number", args: []string{"--webhook-port=x"}, wantErr: []string{"webhook-port"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := parseFlags(tc.args)
			if tc.wantErr == nil {
				require.NoError(t, err)
				return
			}
			for _, want := range tc.wantErr {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestWholeRequestsAreNeverLogged(t *testing.T) {
	for _, level := range []string{"8", "10", "127"} {
		f, err := parseFlags([]string{"--zap-log-level=" + level})
		require.NoError(t, err)
		require.True(t, f.zap.Level.Enabled(-7), level)
		require.False(t, f.zap.Level.Enabled(-8), level)
	}
	f, err := parseFlags([]string{"--zap-log-level=error"})
	require.NoError(t, err)
	require.False(t, f.zap.Level.Enabled(0), "less is what it was asked to be")
}

func TestHelp(t *testing.T) {
	_, err := parseFlags([]string{"--help"})
	require.ErrorIs(t, err, flag.ErrHelp)

	var out bytes.Buffer
	usage(&out)
	newFlagSet(&flags{}).VisitAll(func(f *flag.Flag) {
		require.Contains(t, out.String(), "  --"+f.Name+" ")
	})
}
