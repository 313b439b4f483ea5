// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// runBare starts the operator as it is told, without waiting for it.
func (e *env) runBare(t *testing.T, o deploy.RunOptions) *deploy.Process {
	t.Helper()
	o.Program, o.Log = program, filepath.Join(t.TempDir(), "operator.log")
	p, err := e.Run(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}

func logOf(t *testing.T, p *deploy.Process) string {
	t.Helper()
	text, err := os.ReadFile(p.Log)
	require.NoError(t, err)
	return string(text)
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason string
		flags  []string
		words  string
	}{
		{"an unknown flag", []string{"--drain-faster"}, "drain-faster"},
		{"no port", []string{"--webhook-port=70000"}, "70000"},
		{"no workers", []string{"--max-concurrent-reconciles=-1"}, "max-concurrent-reconciles"},
		{"a folder without a certificate", []string{"--webhook-cert-dir=" + t.TempDir()}, "tls.crt"},
		{"no address", []string{"--health-probe-bind-address=nowhere"}, "nowhere"},
		{"no kubeconfig", []string{"--kubeconfig=/does/not/exist"}, "/does/not/exist"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			p := shared.runBare(t, deploy.RunOptions{Flags: row.flags})
			require.NotZero(t, p.ExitCode())
			require.Contains(t, logOf(t, p), row.words, "the message names the input")
		})
	}
}

// The operator waits for an API server that is away, also at its start, and ends quickly when told to.
func TestTheOperatorOutlivesTheAPIServer(t *testing.T) {
	t.Parallel()
	e := own(t, deploy.Options{})
	node := e.node(t)
	require.NoError(t, e.Cluster.StopComponent(cluster.APIServer))
	config, err := e.Cluster.ServiceAccountKubeconfig(t.Context(), deploy.Namespace, deploy.ServiceAccount)
	require.Error(t, err, "a token can only be had from an API server that is there")
	require.Empty(t, config)
	require.NoError(t, e.Cluster.StartComponent(t.Context(), cluster.APIServer))
	config, err = e.Cluster.ServiceAccountKubeconfig(t.Context(), deploy.Namespace, deploy.ServiceAccount)
	require.NoError(t, err)
	require.NoError(t, e.Cluster.StopComponent(cluster.APIServer))

	p := e.runBare(t, deploy.RunOptions{Kubeconfig: config})
	healthy := func(path string, want int) func() bool {
		return func() bool { code, _ := p.Probe(t.Context(), path); return code == want }
	}
	e.eventually(t, "the operator to be alive", healthy("/healthz", 200))
	e.eventually(t, "it to say that it waits", func() bool { return strings.Contains(logOf(t, p), "does not answer") })
	require.False(t, healthy("/readyz", 200)(), "not ready without an API server")

	require.NoError(t, e.Cluster.StartComponent(t.Context(), cluster.APIServer))
	require.NoError(t, p.Ready(t.Context()))
	nm := e.maintain(t, node)
	e.succeed(t, nm)

	require.NoError(t, e.Cluster.RestartAPIServer(t.Context()))
	e.end(t, nm)
	require.False(t, e.getNode(t, node).Spec.Unschedulable)
	require.NoError(t, p.Stop(3*5*time.Second), "5 s are promised")
	require.Zero(t, p.ExitCode())
}

func TestWithoutTheCRDTheOperatorSaysWhatToApply(t *testing.T) {
	t.Parallel()
	e, err := bringUp(t.Context(), cluster.Options{}, deploy.Options{}, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Cluster.Stop()) })
	_, err = e.Kubectl(t.Context(), nil, "delete", "crd", "nodemaintenances.nodemaintenance.medik8s.io", "--wait")
	require.NoError(t, err)

	p := e.runBare(t, deploy.RunOptions{})

	require.Equal(t, 1, p.ExitCode())
	require.Contains(t, logOf(t, p), "nodemaintenances.nodemaintenance.medik8s.io")
	require.Contains(t, logOf(t, p), "kubectl apply")
}

// CEL answers before the webhook, so each is tested without the other.
func TestNodeNameCannotBeChangedWithoutTheWebhookNorWithoutCEL(t *testing.T) {
	t.Parallel()
	e := own(t, deploy.Options{Edit: func(u *unstructured.Unstructured) bool {
		if u.GetKind() == "CustomResourceDefinition" {
			withoutCEL(u.Object)
		}
		return true
	}})
	e.start(t, deploy.RunOptions{})
	node := e.node(t)
	nm := e.maintain(t, node)
	err := e.Patch(t.Context(), nm, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"nodeName":"other"}}`)))
	require.ErrorContains(t, err, "vnodemaintenance.kb.io")
	require.ErrorContains(t, err, nodeNameChanged)

	// A webhook that is down holds up neither a reason, nor the status, nor the finalizer.
	e.succeed(t, nm)
	e.operator.Kill()
	require.NoError(t, e.Patch(t.Context(), nm, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"reason":"the webhook is down"}}`))))
	require.ErrorContains(t, e.Create(t.Context(), maintenanceOf("while-down", node)), "vnodemaintenance.kb.io", "but nothing new is admitted unseen")
	require.NoError(t, e.run(t.Context(), deploy.RunOptions{Flags: []string{"--enable-webhooks=false"}}))
	e.until(t, nm, "observed", func(s v1beta1.NodeMaintenanceStatus) bool { return s.ObservedGeneration == 2 })
	e.end(t, nm)
	require.False(t, e.getNode(t, node).Spec.Unschedulable)
}

// withoutCEL takes every validation rule out of a CRD.
func withoutCEL(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "x-kubernetes-validations")
		for _, inner := range v {
			withoutCEL(inner)
		}
	case []any:
		for _, inner := range v {
			withoutCEL(inner)
		}
	}
}
