// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

const (
	waitFor = 10 * time.Second
	tick    = 10 * time.Millisecond
)

func TestAssemble(t *testing.T) {
	f, err := parseFlags([]string{"--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0"})
	require.NoError(t, err)
	f.webhookCertDir = t.TempDir()
	for _, name := range []string{"tls.crt", "tls.key"} {
		require.NoError(t, os.WriteFile(filepath.Join(f.webhookCertDir, name), nil, 0o600))
	}
	_, err = assemble(&rest.Config{Host: "http://127.0.0.1:1"}, f, namespaces{leases: "l", operator: "o"})
	require.NoError(t, err, "with a certificate at hand, putting it together needs no API server")
}

func TestCacheOptions(t *testing.T) {
	for _, tc := range []struct {
		reason string
		flags  flags
		folder string
		want   int
	}{
		{reason: "a managed certificate needs a Secret and a webhook configuration", flags: flags{webhooks: true}, want: 2},
		{reason: "a folder needs neither", flags: flags{webhooks: true}, folder: "/certs"},
		{reason: "without a webhook there is no certificate"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			o := cacheOptions(&tc.flags, tc.folder, "ns")
			require.Len(t, o.ByObject, tc.want)
			require.True(t, o.ReaderFailOnMissingInformer)
		})
	}
}

func TestTLSOptions(t *testing.T) {
	for _, tc := range []struct {
		reason string
		http2  bool
		want   []string
	}{
		{reason: "HTTP/2 is not offered", want: []string{"http/1.1"}},
		{reason: "it is when asked for", http2: true, want: []string{"h2"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := &tls.Config{NextProtos: []string{"h2"}}
			for _, set := range tlsOptions(&flags{http2: tc.http2}) {
				set(c)
			}
			require.Equal(t, tc.want, c.NextProtos)
			require.Equal(t, uint16(tls.VersionTLS12), c.MinVersion)
		})
	}
}

func TestFilled(t *testing.T) {
	request := httptest.NewRequest(http.MethodGet, "/readyz", nil)
	require.NoError(t, filled(func(context.Context) bool { return true })(request))
	never := func(ctx context.Context) bool {
		<-ctx.Done()
		return false
	}
	require.Error(t, filled(never)(request))
}
