// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodemaint/nodemaint/test/deploy"
	"github.com/nodemaint/nodemaint/test/program"
)

// wrongCA makes the API server trust somebody else than who signed the webhook's certificate.
type wrongCA struct{}

func (wrongCA) name() string  { return "wrong-ca" }
func (wrongCA) title() string { return "the API server trusts another authority than the webhook's" }

// wrongTimes is how often that is done.
const wrongTimes = 3

func (f wrongCA) run(ctx context.Context, s *stage) (string, error) {
	nodes, err := s.AddNodes(ctx, f.name(), 6, 5)
	if err != nil {
		return "", err
	}
	foreign, err := deploy.NewAuthority("of another", time.Now().Add(time.Hour))
	if err != nil {
		return "", err
	}
	err = s.While(ctx, nodes, func(ctx context.Context) error {
		for range wrongTimes {
			if err := trust(ctx, s, foreign.CertPEM()); err != nil {
				return err
			}
			if err := s.Until(ctx, "the right authority to be trusted", func(ctx context.Context) error { return good(ctx, s) }); err != nil {
				return err
			}
			if err := program.Pause(ctx, before); err != nil {
				return err
			}
		}
		return nil
	})
	return fmt.Sprintf("put right %d times", wrongTimes), err
}

// expiredCertificate lets the webhook's certificate be over, and then that of its authority.
type expiredCertificate struct{}

func (expiredCertificate) name() string { return "expired" }
func (expiredCertificate) title() string {
	return "the webhook's certificate, then its authority, expires while it runs"
}

func (f expiredCertificate) run(ctx context.Context, s *stage) (string, error) {
	nodes, err := s.AddNodes(ctx, f.name(), 6, 5)
	if err != nil {
		return "", err
	}
	err = s.While(ctx, nodes, func(ctx context.Context) error {
		for what, expire := range map[string]func(map[string][]byte) error{"certificate": expireCertificate, "authority": expireAuthority} {
			s.Say("the %s has expired", what)
			if err := edit(ctx, s, expire); err != nil {
				return err
			}
			if err := s.Until(ctx, "a good "+what, func(ctx context.Context) error { return good(ctx, s) }); err != nil {
				return err
			}
			if err := program.Pause(ctx, before); err != nil {
				return err
			}
		}
		return nil
	})
	return "another certificate, another authority", err
}

// ago is when what has expired ended.
func ago() time.Time { return time.Now().Add(-time.Minute) }

// expireCertificate puts a certificate of the right authority that is over into the Secret.
func expireCertificate(data map[string][]byte) error {
	ca, err := deploy.ParsePair(data["ca.crt"], data["ca.key"])
	if err != nil {
		return err
	}
	return sign(data, ca, ago())
}

// expireAuthority puts an authority that is over into the Secret, and a certificate of it that is not.
func expireAuthority(data map[string][]byte) error {
	ca, err := deploy.NewAuthority("node-maintenance-operator-ca", ago())
	if err != nil {
		return err
	}
	if data["ca.crt"], data["ca.key"], err = ca.PEM(); err != nil {
		return err
	}
	return sign(data, ca, time.Now().Add(time.Hour))
}

func sign(data map[string][]byte, ca deploy.Pair, end time.Time) error {
	cert, err := ca.ForWebhook(end)
	if err != nil {
		return err
	}
	data["tls.crt"], data["tls.key"], err = cert.PEM()
	return err
}

func edit(ctx context.Context, s *stage, change func(map[string][]byte) error) error {
	return s.Until(ctx, "the webhook's Secret to be written", func(ctx context.Context) error {
		secret, err := servingSecret(ctx, s)
		if err != nil {
			return err
		}
		if err := change(secret.Data); err != nil {
			return err
		}
		return s.Update(ctx, secret)
	})
}

func servingSecret(ctx context.Context, s *stage) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, s.Get(ctx, types.NamespacedName{Namespace: deploy.Namespace, Name: "webhook-server-cert"}, secret)
}

// good returns an error unless the Secret, the webhook's server and what the API server trusts go together, and
// nothing of it is over.
func good(ctx context.Context, s *stage) error {
	secret, err := servingSecret(ctx, s)
	if err != nil {
		return err
	}
	config, err := s.Webhook(ctx)
	if err != nil {
		return err
	}
	if !bytes.Equal(config.Webhooks[0].ClientConfig.CABundle, secret.Data["ca.crt"]) {
		return fmt.Errorf("%w: the trusted authority is not that of the Secret", errApart)
	}
	served, err := presented(ctx, s.WebhookPort)
	if err != nil {
		return err
	}
	if block, _ := pem.Decode(secret.Data["tls.crt"]); block == nil || !bytes.Equal(block.Bytes, served.Raw) {
		return fmt.Errorf("%w: the served certificate is not that of the Secret", errApart)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	_, err = served.Verify(x509.VerifyOptions{Roots: roots, DNSName: deploy.WebhookHost})
	return err
}

var errApart = errors.New("the webhook's certificate")

// presented returns the certificate with which a server on this machine answers.
func presented(ctx context.Context, port int) (*x509.Certificate, error) {
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // it is looked at, not trusted
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return c.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}
