// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	day   = 24 * time.Hour
	start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
)

func TestRenew(t *testing.T) {
	wanted := names("ns")
	good, _, err := renew(nil, wanted, start)
	require.NoError(t, err)
	without := func(key string) map[string][]byte {
		m := maps.Clone(good)
		delete(m, key)
		return m
	}
	with := func(key string, value []byte) map[string][]byte {
		m := maps.Clone(good)
		m[key] = value
		return m
	}
	leafAsCA := maps.Clone(good)
	leafAsCA[caFile], leafAsCA[caKeyFile] = good[certFile], good[keyFile]

	for _, tc := range []struct {
		reason        string
		data          map[string][]byte
		names         []string
		at            time.Time
		changed       bool
		sameAuthority bool
	}{
		{reason: "a new Secret is empty", changed: true},
		{reason: "a good pair is kept", data: good, sameAuthority: true},
		{reason: "so it is 91 days before its end", data: good, at: start.Add(274 * day), sameAuthority: true},
		{reason: "89 days before its end the certificate is renewed, the authority kept", data: good, at: start.Add(276 * day), changed: true, sameAuthority: true},
		{reason: "before the authority ends all is renewed", data: good, at: start.Add(3600 * day), changed: true},
		{reason: "the certificate is for the Service of another namespace", data: good, names: names("other"), changed: true, sameAuthority: true},
		{reason: "the certificate is gone", data: without(certFile), changed: true, sameAuthority: true},
		{reason: "the key is gone", data: without(keyFile), changed: true, sameAuthority: true},
		{reason: "the key is another's", data: with(keyFile, good[caKeyFile]), changed: true, sameAuthority: true},
		{reason: "the certificate is nonsense", data: with(certFile, []byte("{{{")), changed: true, sameAuthority: true},
		{reason: "the authority's key is gone", data: without(caKeyFile), changed: true},
		{reason: "the authority is nonsense", data: with(caFile, []byte("{{{")), changed: true},
		{reason: "the authority cannot sign", data: leafAsCA, changed: true},
		{reason: "an entry that is somebody else's is kept", data: map[string][]byte{"note": []byte("x")}, changed: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if tc.names == nil {
				tc.names = wanted
			}
			if tc.at.IsZero() {
				tc.at = start
			}
			got, changed, err := renew(tc.data, tc.names, tc.at)
			require.NoError(t, err)
			require.Equal(t, tc.changed, changed)
			require.Equal(t, tc.sameAuthority, string(got[caFile]) == string(good[caFile]))
			require.Equal(t, tc.data["note"], got["note"])

			_, again, err := renew(got, tc.names, tc.at)
			require.NoError(t, err)
			require.False(t, again, "what was made is good")
		})
	}
}

func TestCertificateIsWhatAnAPIServerAccepts(t *testing.T) {
	data, _, err := renew(nil, names("node-maintenance-operator-system"), start)
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(data[certFile], data[keyFile])
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(data[caFile]))
	for _, name := range []string{"node-maintenance-operator-webhook-service.node-maintenance-operator-system.svc", "localhost"} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool, CurrentTime: start})
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(pair.Leaf.Subject.CommonName), 64)
}
