// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Compact makes etcd forget everything but what is stored now. A client that was away, and asks for the changes
// since some time before, is told 410 Gone, as soon as the API server has no memory of its own of that time:
// RestartAPIServer sees to that.
func (c *Cluster) Compact(ctx context.Context) error {
	e, err := c.etcdGateway()
	if err != nil {
		return err
	}
	defer e.http.CloseIdleConnections()
	var status struct{ Header struct{ Revision string } }
	if err := e.post(ctx, "/v3/maintenance/status", struct{}{}, &status); err != nil {
		return err
	}
	compaction := map[string]any{"revision": status.Header.Revision, "physical": true}
	return e.post(ctx, "/v3/kv/compaction", compaction, &struct{}{})
}

// etcdGateway speaks to etcd in JSON.
type etcdGateway struct {
	http *http.Client
	url  string
}

func (c *Cluster) etcdGateway() (*etcdGateway, error) {
	p := c.layout.pki()
	ca, err := os.ReadFile(p.ca())
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's authority: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	cert, err := tls.LoadX509KeyPair(p.cert(etcdCert), p.key(etcdCert))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate for etcd: %w", err)
	}
	return &etcdGateway{url: url(c.ports.etcd), http: &http.Client{
		Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}}},
	}}, nil
}

func (e *etcdGateway) post(ctx context.Context, path string, ask, answer any) error {
	body, err := json.Marshal(ask)
	if err != nil {
		return fmt.Errorf("asking etcd for %s: %w", path, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking etcd for %s: %w", path, err)
	}
	res, err := e.http.Do(req)
	if err != nil {
		return fmt.Errorf("asking etcd for %s: %w", path, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("asking etcd for %s: %w", path, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("asking etcd for %s: %s: %s", path, res.Status, text)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("asking etcd for %s: %w", path, err)
	}
	return nil
}
