// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// WebhookHost is the name under which the API server reaches the webhook.
const WebhookHost = WebhookService + "." + Namespace + ".svc"

// Pair is a certificate and its key.
type Pair struct {
	Cert *x509.Certificate
	Key  crypto.Signer
}

// NewAuthority makes an authority that begins a day before its end.
func NewAuthority(name string, end time.Time) (Pair, error) {
	return Pair{}.issue(x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotAfter: end,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
}

// ForWebhook issues a certificate for the webhook that begins a day before its end.
func (p Pair) ForWebhook(end time.Time) (Pair, error) {
	return p.issue(x509.Certificate{
		Subject: pkix.Name{CommonName: WebhookService}, DNSNames: []string{WebhookService, WebhookHost, "localhost"}, NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// issue signs a certificate; the zero pair lets it sign itself.
func (p Pair) issue(cert x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making a key: %w", err)
	}
	cert.SerialNumber = big.NewInt(time.Now().UnixNano())
	cert.NotBefore = cert.NotAfter.Add(-24 * time.Hour)
	if p.Cert == nil {
		p = Pair{&cert, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, &cert, p.Cert, key.Public(), p.Key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing a certificate: %w", err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return Pair{}, fmt.Errorf("reading a certificate: %w", err)
	}
	return Pair{signed, key}, nil
}

// ParsePair reads a pair as PEM returns it.
func ParsePair(cert, key []byte) (Pair, error) {
	both, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return Pair{}, fmt.Errorf("reading a certificate and its key: %w", err)
	}
	signer, ok := both.PrivateKey.(crypto.Signer)
	if !ok {
		return Pair{}, errNoSigner
	}
	return Pair{both.Leaf, signer}, nil
}

var errNoSigner = errors.New("the key of a certificate cannot sign")

// CertPEM returns the certificate as PEM.
func (p Pair) CertPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Cert.Raw})
}

// PEM returns the certificate and the key as PEM.
func (p Pair) PEM() (cert, key []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(p.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("writing a key: %w", err)
	}
	return p.CertPEM(), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
