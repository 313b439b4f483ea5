// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
)

// errNone is for handshakes before the first certificate is there.
var errNone = errors.New("there is no certificate yet")

// Serving holds the certificate that the webhook server presents now. The zero value holds none. It is
// safe for concurrent use.
type Serving struct {
	current atomic.Pointer[tls.Certificate]
}

// Use makes a server present what s holds. It is an option of controller-runtime's webhook server.
func (s *Serving) Use(c *tls.Config) { c.GetCertificate = s.get }

func (s *Serving) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.current.Load(); c != nil {
		return c, nil
	}
	return nil, errNone
}

// hold presents the certificate in data from the next handshake on.
func (s *Serving) hold(data map[string][]byte) error {
	c, err := tls.X509KeyPair(data[certFile], data[keyFile])
	if err != nil {
		return fmt.Errorf("reading the webhook's certificate: %w", err)
	}
	s.current.Store(&c)
	return nil
}
