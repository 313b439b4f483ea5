// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
)

// The entries of the Secret besides certificate and key.
const (
	caFile    = "ca.crt"
	caKeyFile = "ca.key"
)

// How long things are valid, and how long before their end they are made anew.
const (
	caValid     = 10 * 365 * 24 * time.Hour
	certValid   = 365 * 24 * time.Hour
	renewBefore = 90 * 24 * time.Hour
	// backdate bears clocks that go slow.
	backdate = time.Hour

	caName       = "node-maintenance-operator-ca"
	organization = "node-maintenance-operator"
)

// usages is what the certificate is for.
var usages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}

// renew returns what the Secret should hold and whether that differs from data: an authority and a
// certificate by it for all the names, both valid for renewBefore and longer. What is good is kept.
func renew(data map[string][]byte, names []string, now time.Time) (map[string][]byte, bool, error) {
	ca := authority(data, now)
	if ca != nil && valid(data[caFile], data[certFile], data[keyFile], names, now) {
		return data, false, nil
	}
	maker := &rotator.CertRotator{
		CAName: caName, CAOrganization: organization,
		DNSName: names[0], ExtraDNSNames: names[1:], ExtKeyUsages: &usages,
	}
	var err error
	if ca == nil {
		if ca, err = maker.CreateCACert(now.Add(-backdate), now.Add(caValid)); err != nil {
			return nil, false, fmt.Errorf("making an authority for the webhook's certificate: %w", err)
		}
	}
	cert, key, err := maker.CreateCertPEM(ca, now.Add(-backdate), now.Add(certValid))
	if err != nil {
		return nil, false, fmt.Errorf("making a certificate for the webhook: %w", err)
	}
	out := maps.Clone(data)
	if out == nil {
		out = map[string][]byte{}
	}
	out[caFile], out[caKeyFile], out[certFile], out[keyFile] = ca.CertPEM, ca.KeyPEM, cert, key
	return out, true, nil
}

// authority returns the authority in data; nil if there is none, or none that can sign for long enough.
func authority(data map[string][]byte, now time.Time) *rotator.KeyPairArtifacts {
	if ok, err := rotator.ValidCert(data[caFile], data[caFile], data[caKeyFile], caName, nil, now.Add(renewBefore)); err != nil || !ok {
		return nil
	}
	pair, err := tls.X509KeyPair(data[caFile], data[caKeyFile])
	if err != nil {
		return nil
	}
	key, ok := pair.PrivateKey.(*rsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return nil
	}
	return &rotator.KeyPairArtifacts{Cert: pair.Leaf, Key: key, CertPEM: data[caFile], KeyPEM: data[caKeyFile]}
}

// valid says whether a certificate is good for each of the names, by ca, for long enough.
func valid(ca, cert, key []byte, names []string, now time.Time) bool {
	for _, name := range names {
		if ok, err := rotator.ValidCert(ca, cert, key, name, &usages, now.Add(renewBefore)); err != nil || !ok {
			return false
		}
	}
	return true
}
