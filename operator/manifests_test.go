// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/nodemaint/nodemaint/operator/certs"
)

// prefix is what the manifests put before every name.
const prefix = "node-maintenance-operator-"

func read[T any](t *testing.T, file string) []T {
	b, err := os.ReadFile(filepath.Join("config", filepath.FromSlash(file)))
	require.NoError(t, err)
	var out []T
	for doc := range strings.SplitSeq(string(b), "\n---\n") {
		var o T
		require.NoError(t, yaml.Unmarshal([]byte(doc), &o))
		out = append(out, o)
	}
	return out
}

func TestWebhookManifestFitsTheProgram(t *testing.T) {
	config := read[admissionregistrationv1.ValidatingWebhookConfiguration](t, "webhook/manifests.yaml")[0]
	require.Equal(t, certs.ConfigurationName, prefix+config.Name)
	require.Len(t, config.Webhooks, 1)
	hook := config.Webhooks[0]
	require.Equal(t, "vnodemaintenance.kb.io", hook.Name)
	require.Equal(t, WebhookPath, *hook.ClientConfig.Service.Path)
	require.Equal(t, certs.ServiceName, prefix+hook.ClientConfig.Service.Name)
	require.Equal(t, admissionregistrationv1.Fail, *hook.FailurePolicy)
	require.Equal(t, "oldObject == null || object.spec.nodeName != oldObject.spec.nodeName", hook.MatchConditions[0].Expression)
}

// TestRights keeps rights on what belongs to the cluster's keepers to the one object of ours.
func TestRights(t *testing.T) {
	named := map[string]string{
		"secrets update":                         certs.SecretName,
		"secrets create":                         certs.SecretName,
		"secrets patch":                          certs.SecretName,
		"secrets list":                           certs.SecretName,
		"secrets watch":                          certs.SecretName,
		"validatingwebhookconfigurations update": certs.ConfigurationName,
	}
	seen := 0
	for _, role := range read[rbacv1.ClusterRole](t, "rbac/role.yaml") { // a Role has the same rules
		for _, rule := range role.Rules {
			require.NotContains(t, rule.Verbs, "*")
			require.NotContains(t, rule.Resources, "*")
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if name := named[resource+" "+verb]; name != "" {
						require.Equal(t, []string{name}, rule.ResourceNames, "%s %s", verb, resource)
						seen++
					}
				}
			}
		}
	}
	require.Equal(t, len(named), seen)
}

func TestDeploymentLeavesANodeThatIsDrained(t *testing.T) {
	d := read[appsv1.Deployment](t, "manager/deployment.yaml")[0]
	require.Equal(t, map[string]string{"control-plane": "controller-manager", "node-maintenance-operator": ""}, d.Spec.Selector.MatchLabels)
	require.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
	for _, toleration := range d.Spec.Template.Spec.Tolerations {
		require.Contains(t, []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}, toleration.Key)
	}
}

// The runtime must know of the limit: it lets garbage lie otherwise until the kernel ends the process.
func TestMemoryLimitIsKnownToTheRuntime(t *testing.T) {
	c := read[appsv1.Deployment](t, "manager/deployment.yaml")[0].Spec.Template.Spec.Containers[0]
	limit := c.Resources.Limits[corev1.ResourceMemory]
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
	require.GreaterOrEqual(t, i, 0)
	soft, err := resource.ParseQuantity(strings.TrimSuffix(c.Env[i].Value, "B")) // MiB there, Mi here
	require.NoError(t, err)
	require.Positive(t, soft.Value())
	require.LessOrEqual(t, soft.Value(), limit.Value()*9/10)
}
