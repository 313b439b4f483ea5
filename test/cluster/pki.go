// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pki is the folder with a cluster's keys and certificates. One authority signs
// all of them, for servers and for clients.
type pki struct{ dir string }

func (p pki) ca() string                { return filepath.Join(p.dir, "ca.crt") }
func (p pki) serviceAccountKey() string { return filepath.Join(p.dir, "service-accounts.key") }
func (p pki) serviceAccountPub() string { return filepath.Join(p.dir, "service-accounts.pub") }
func (p pki) cert(name string) string   { return filepath.Join(p.dir, name+".crt") }
func (p pki) key(name string) string    { return filepath.Join(p.dir, name+".key") }

// Names of the certificates in the folder.
const (
	servingCert = "serving" // every server's
	adminCert   = "admin"
	etcdCert    = "etcd-client"
)

// identity is who a client certificate stands for.
type identity struct {
	file, user string
	groups     []string
}

// identities are the clients of a cluster. kwok is an administrator because it
// plays every kubelet at once.
func identities() []identity {
	return []identity{
		{file: adminCert, user: "admin", groups: []string{"system:masters"}},
		{file: etcdCert, user: string(APIServer)},
		{file: string(ControllerManager), user: "system:kube-controller-manager"},
		{file: string(Scheduler), user: "system:kube-scheduler"},
		{file: string(Kwok), user: "kwok", groups: []string{"system:masters"}},
	}
}

// newPKI makes all keys and certificates of a cluster in dir.
func newPKI(dir string, now time.Time) (pki, error) {
	p := pki{dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return p, fmt.Errorf("making folder for certificates: %w", err)
	}
	a, err := newAuthority(now)
	if err != nil {
		return p, err
	}
	if err := writePEM(p.ca(), "CERTIFICATE", a.cert.Raw); err != nil {
		return p, err
	}
	if err := a.issue(p, servingCert, servingTemplate()); err != nil {
		return p, err
	}
	for _, id := range identities() {
		if err := a.issue(p, id.file, clientTemplate(id)); err != nil {
			return p, err
		}
	}
	return p, writeServiceAccountKeys(p)
}

// authority signs certificates; its key is never written down.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	now  time.Time
}

// lifetime of certificates: longer than any cluster is left running.
const lifetime = 365 * 24 * time.Hour

func newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the authority's key: %w", err)
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "nodemaint test cluster"},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.Add(lifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the authority's certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	return &authority{cert: cert, key: key, now: now}, nil
}

// servingTemplate is good for a server of this machine and for etcd's peer
// connections, where a server is a client as well.
func servingTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"},
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

func clientTemplate(id identity) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: id.user, Organization: id.groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func (a *authority) issue(p pki, name string, t *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making key %s: %w", name, err)
	}
	t.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return fmt.Errorf("making certificate %s: %w", name, err)
	}
	t.NotBefore, t.NotAfter = a.now.Add(-time.Hour), a.now.Add(lifetime)
	t.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("making certificate %s: %w", name, err)
	}
	if err := writePEM(p.cert(name), "CERTIFICATE", der); err != nil {
		return err
	}
	return writePrivateKey(p.key(name), key)
}

func writeServiceAccountKeys(p pki) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the key of service accounts: %w", err)
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encoding the key of service accounts: %w", err)
	}
	if err := writePEM(p.serviceAccountPub(), "PUBLIC KEY", pub); err != nil {
		return err
	}
	return writePrivateKey(p.serviceAccountKey(), key)
}

func writePrivateKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding key %s: %w", path, err)
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
