// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// renewal is how long a certificate may take to be made anew and to be known everywhere.
const renewal = 5 * time.Second

var (
	servingSecret = client.ObjectKey{Namespace: deploy.Namespace, Name: "webhook-server-cert"}
	serviceName   = deploy.WebhookHost
)

// pair is a certificate and its key.
type pair struct{ deploy.Pair }

func newCA(t *testing.T, name string, end time.Time) pair {
	t.Helper()
	p, err := deploy.NewAuthority(name, end)
	require.NoError(t, err)
	return pair{p}
}

// forService issues a certificate of the webhook's Service.
func (p pair) forService(t *testing.T, end time.Time) pair {
	t.Helper()
	issued, err := p.ForWebhook(end)
	require.NoError(t, err)
	return pair{issued}
}

func (p pair) certPEM() []byte { return p.CertPEM() }

func (p pair) keyPEM(t *testing.T) []byte {
	t.Helper()
	_, key, err := p.PEM()
	require.NoError(t, err)
	return key
}

func (p pair) write(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), p.keyPEM(t), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), p.certPEM(), 0o600))
}

// presented returns the certificate with which a server on this machine answers.
func presented(t *testing.T, port int) *x509.Certificate {
	t.Helper()
	c, err := tls.Dial("tcp", onLoopback(port), &tls.Config{InsecureSkipVerify: true, ServerName: serviceName}) //nolint:gosec // it is looked at, not trusted
	if err != nil {
		return nil
	}
	defer func() { _ = c.Close() }()
	return c.ConnectionState().PeerCertificates[0]
}

func onLoopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func (e *env) servingSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	if err := e.Get(t.Context(), servingSecret, s); client.IgnoreNotFound(err) != nil {
		require.NoError(t, err)
	}
	return s
}

// admits says whether the API server reaches the webhook and believes it.
func (e *env) admits(t *testing.T, node string) bool {
	t.Helper()
	return e.dryCreate(t, maintenanceOf("admits-"+suffix(t), node)) == nil
}

func (e *env) dryCreate(t *testing.T, o client.Object) error {
	t.Helper()
	return e.Create(t.Context(), o, client.DryRunAll)
}

// requireManaged checks that Secret, webhook configuration and server go together.
func (e *env) requireManaged(t *testing.T) {
	t.Helper()
	s := e.servingSecret(t)
	for _, key := range []string{"ca.crt", "ca.key", "tls.crt", "tls.key"} {
		require.NotEmpty(t, s.Data[key], key)
	}
	require.Equal(t, string(s.Data["ca.crt"]), string(e.webhooks(t).Webhooks[0].ClientConfig.CABundle))
	served := presented(t, e.WebhookPort)
	require.Equal(t, certOf(t, s.Data["tls.crt"]).Raw, served.Raw)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(s.Data["ca.crt"]))
	_, err := served.Verify(x509.VerifyOptions{Roots: roots, DNSName: serviceName})
	require.NoError(t, err)
}

func certOf(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	require.NotNil(t, block)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return cert
}

func TestTheCertificateOfTheWebhookIsKeptGood(t *testing.T) {
	t.Parallel()
	e := own(t, deploy.Options{})
	e.start(t, deploy.RunOptions{Flags: []string{"--zap-log-level=10"}})
	node := e.node(t)
	e.eventually(t, "the webhook to be believed", func() bool { return e.admits(t, node) })
	e.requireManaged(t)

	// edit changes the Secret and returns what it held before.
	edit := func(t *testing.T, change func(data map[string][]byte)) map[string][]byte {
		var before map[string][]byte
		e.eventually(t, "the secret to be written", func() bool {
			s := e.servingSecret(t)
			before = s.DeepCopy().Data
			change(s.Data)
			return e.Update(t.Context(), s) == nil
		})
		return before
	}
	renewed := func(t *testing.T, before []byte) {
		e.within(t, renewal, "another certificate to be believed", func() bool {
			now := presented(t, e.WebhookPort)
			return !bytes.Equal(e.servingSecret(t).Data["tls.crt"], before) && now != nil &&
				bytes.Equal(now.Raw, leaf(e.servingSecret(t).Data["tls.crt"])) && e.admits(t, node)
		})
		e.requireManaged(t)
	}

	t.Run("when it has expired, and no create is refused meanwhile", func(t *testing.T) {
		stop := e.keepAdmitting(t, node)
		before := edit(t, func(data map[string][]byte) {
			ca, err := deploy.ParsePair(data["ca.crt"], data["ca.key"])
			require.NoError(t, err)
			expired := pair{ca}.forService(t, time.Now().Add(-time.Minute))
			data["tls.crt"], data["tls.key"] = expired.certPEM(), expired.keyPEM(t)
		})
		e.within(t, renewal, "a certificate that is good", func() bool {
			cert := leaf(e.servingSecret(t).Data["tls.crt"])
			now := presented(t, e.WebhookPort)
			return !bytes.Equal(cert, leaf(before["tls.crt"])) && now != nil && bytes.Equal(now.Raw, cert) && now.NotAfter.After(time.Now())
		})
		require.Empty(t, stop())
		e.requireManaged(t)
		require.Equal(t, string(before["ca.crt"]), string(e.servingSecret(t).Data["ca.crt"]), "by the same authority")
	})

	t.Run("when the Secret is deleted", func(t *testing.T) {
		before := e.servingSecret(t)
		require.NoError(t, e.Delete(t.Context(), before))
		renewed(t, before.Data["tls.crt"])
		require.NotEqual(t, before.UID, e.servingSecret(t).UID)
	})

	t.Run("when its authority has expired", func(t *testing.T) {
		ca := newCA(t, "node-maintenance-operator-ca", time.Now().Add(-time.Minute))
		cert := ca.forService(t, time.Now().Add(time.Hour))
		edit(t, func(data map[string][]byte) {
			data["ca.crt"], data["ca.key"], data["tls.crt"], data["tls.key"] = ca.certPEM(), ca.keyPEM(t), cert.certPEM(), cert.keyPEM(t)
		})
		renewed(t, cert.certPEM())
	})

	t.Run("when the Secret is emptied or holds rubbish", func(t *testing.T) {
		before := edit(t, func(data map[string][]byte) { clear(data); data["tls.crt"] = []byte("rubbish") })
		renewed(t, before["tls.crt"])
	})

	t.Run("when another program left a Secret of that name", func(t *testing.T) {
		ca := newCA(t, "of another", time.Now().Add(time.Hour))
		cert := ca.forService(t, time.Now().Add(time.Hour))
		e.operator.Kill()
		require.NoError(t, e.Delete(t.Context(), e.servingSecret(t)))
		require.NoError(t, e.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: servingSecret.Namespace, Name: servingSecret.Name}, Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{"ca.crt": ca.certPEM(), "tls.crt": cert.certPEM(), "tls.key": cert.keyPEM(t)},
		}))
		require.NoError(t, e.run(t.Context(), deploy.RunOptions{Flags: []string{"--zap-log-level=10"}}))
		renewed(t, cert.certPEM())
	})

	t.Run("when somebody takes the authority out of the webhook configuration", func(t *testing.T) {
		e.trust(t, nil)
		e.within(t, renewal, "the webhook to be believed", func() bool { return e.admits(t, node) })
		e.requireManaged(t)
		e.trust(t, newCA(t, "of another", time.Now().Add(time.Hour)).certPEM())
		e.within(t, renewal, "the webhook to be believed", func() bool { return e.admits(t, node) })
		e.requireManaged(t)
	})

	t.Run("when the webhook configuration is made anew", func(t *testing.T) {
		config := e.webhooks(t)
		require.NoError(t, e.Delete(t.Context(), config))
		config.ResourceVersion = ""
		config.Webhooks[0].ClientConfig.CABundle = nil
		require.NoError(t, e.Create(t.Context(), config))
		e.within(t, renewal, "the webhook to be believed", func() bool { return e.admits(t, node) })
		e.requireManaged(t)
	})

	e.requireDiscreet(t, e.operator.Log)
	e.ofFolders(t, node)
}

// leaf returns the certificate of a text that may be anything.
func leaf(text []byte) []byte {
	if block, _ := pem.Decode(text); block != nil {
		return block.Bytes
	}
	return nil
}

// trust puts an authority into the webhook configuration.
func (e *env) trust(t *testing.T, ca []byte) {
	t.Helper()
	e.eventually(t, "the webhook configuration to be written", func() bool {
		config := e.webhooks(t)
		config.Webhooks[0].ClientConfig.CABundle = ca
		return e.Update(t.Context(), config) == nil
	})
}

// keepAdmitting asks for admission all the time; the function ends that and returns the refusals.
func (e *env) keepAdmitting(t *testing.T, node string) func() []error {
	t.Helper()
	var refusals []error
	var all sync.WaitGroup
	done := make(chan struct{})
	all.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if err := e.dryCreate(t, maintenanceOf(fmt.Sprintf("kept-admitting-%d", i), node)); err != nil {
				refusals = append(refusals, err)
			}
		}
	})
	return func() []error {
		close(done)
		all.Wait()
		return refusals
	}
}

// ofFolders shows that a certificate which somebody else keeps is served, and nothing managed.
func (e *env) ofFolders(t *testing.T, node string) {
	ca := newCA(t, "of the admin", time.Now().Add(time.Hour))
	given, usual := filepath.Join(t.TempDir(), "given"), filepath.Join(e.dir, "k8s-webhook-server", "serving-certs")
	for _, row := range []struct {
		reason, dir string
		flags       []string
	}{
		{"a folder that the flag names", given, []string{"--webhook-cert-dir=" + given}},
		{"the usual folder", usual, nil},
	} {
		t.Run("unless it comes from "+row.reason, func(t *testing.T) {
			require.NoError(t, e.operator.Stop(patience))
			e.trust(t, ca.certPEM())
			if s := e.servingSecret(t); s.Name != "" {
				require.NoError(t, e.Delete(t.Context(), s))
			}
			config := e.webhooks(t)
			cert := ca.forService(t, time.Now().Add(time.Hour))
			cert.write(t, row.dir)
			began := time.Now()
			require.NoError(t, e.run(t.Context(), deploy.RunOptions{Flags: row.flags}))

			e.eventually(t, "the webhook to be believed", func() bool { return e.admits(t, node) })
			require.Equal(t, cert.Cert.Raw, presented(t, e.WebhookPort).Raw)

			next := ca.forService(t, time.Now().Add(2*time.Hour))
			next.write(t, row.dir)
			e.eventually(t, "the new certificate of the folder", func() bool {
				now := presented(t, e.WebhookPort)
				return now != nil && bytes.Equal(now.Raw, next.Cert.Raw)
			})
			require.True(t, e.admits(t, node))
			require.Empty(t, e.servingSecret(t).Name, "no Secret is made")
			require.Equal(t, config.ResourceVersion, e.webhooks(t).ResourceVersion)
			events, err := e.Cluster.ReadAudit(cluster.AuditFilter{User: deploy.User, Since: began})
			require.NoError(t, err)
			require.NotEmpty(t, events)
			for _, ev := range events {
				require.NotContains(t, []string{"secrets", "validatingwebhookconfigurations"}, ev.Resource)
			}
		})
	}
}
