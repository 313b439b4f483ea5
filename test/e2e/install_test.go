// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

var (
	theDeployment = client.ObjectKey{Namespace: deploy.Namespace, Name: "node-maintenance-operator-controller-manager"}
	theSelector   = map[string]string{"control-plane": "controller-manager", "node-maintenance-operator": ""}
)

// bare brings up a cluster on which nothing is installed.
func bare(t *testing.T) *env {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	admin, err := client.New(c.RESTConfig(), client.Options{Scheme: deploy.Scheme()})
	require.NoError(t, err)
	return &env{Installation: &deploy.Installation{Cluster: c}, Client: admin, dir: t.TempDir()}
}

// manifests runs kubectl with operator/config/default as it is, and returns all that it prints, warnings too.
func (e *env) manifests(t *testing.T, verb string, args ...string) string {
	t.Helper()
	out, err := e.kubectl(t.Context(), append([]string{verb, "-k=" + everything()}, args...)...)
	require.NoError(t, err)
	return out
}

// kustomize returns the manifests.
func (e *env) kustomize(ctx context.Context) (string, error) {
	return e.kubectl(ctx, "kustomize", everything())
}

// everything is the folder of all manifests.
func everything() string { return filepath.Join(deploy.Root(), "operator", "config", "default") }

func (e *env) kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, e.Cluster.KubectlPath, args...)
	cmd.Env = []string{"KUBECONFIG=" + e.Cluster.Kubeconfig(), "HOME=" + e.Cluster.Dir()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// replicas waits until the Deployment of the manifests has its two pods and no other, and returns them.
func (e *env) replicas(t *testing.T) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	e.eventually(t, "two replicas and no other pod", func() bool {
		d := &appsv1.Deployment{}
		require.NoError(t, e.Get(t.Context(), theDeployment, d))
		require.NoError(t, e.List(t.Context(), &pods, client.InNamespace(deploy.Namespace)))
		return d.Status.ObservedGeneration == d.Generation && d.Status.ReadyReplicas == 2 && d.Status.UpdatedReplicas == 2 && len(pods.Items) == 2
	})
	return pods.Items
}

func TestTheManifestsInstallAsTheyAre(t *testing.T) {
	t.Parallel()
	e := bare(t)
	e.nodes(t, 3)

	t.Run("on a new cluster", func(t *testing.T) {
		out := e.manifests(t, "apply")
		require.NotContains(t, out, "Warning", "Pod Security has nothing to say, for one")
		for line := range strings.Lines(out) {
			require.Contains(t, line, " created")
		}
		pods := e.replicas(t)
		require.NotEqual(t, pods[0].Spec.NodeName, pods[1].Spec.NodeName, "the replicas stand on different nodes")
		for _, p := range pods {
			e.requireModest(t, p)
		}
		d := &appsv1.Deployment{}
		require.NoError(t, e.Get(t.Context(), theDeployment, d))
		require.Equal(t, theSelector, d.Spec.Selector.MatchLabels)
		ns := &corev1.Namespace{}
		require.NoError(t, e.Get(t.Context(), client.ObjectKey{Name: deploy.Namespace}, ns))
		require.Equal(t, "restricted", ns.Labels["pod-security.kubernetes.io/enforce"])
		e.requireBudget(t)
	})

	t.Run("twice, and nothing changes", func(t *testing.T) {
		hooks := e.webhooks(t)
		hooks.Webhooks[0].ClientConfig.CABundle = newCA(t, "put there by the operator", time.Now().Add(time.Hour)).certPEM()
		require.NoError(t, e.Update(t.Context(), hooks))

		versions := func() string {
			return e.manifests(t, "get", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
		}
		before := versions()

		e.manifests(t, "apply")

		require.Equal(t, before, versions(), "the authority stays too")
	})

	t.Run("and can be taken off again", func(t *testing.T) {
		e.manifests(t, "delete", "--wait", "--timeout=90s")
		require.False(t, e.exists(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: deploy.Namespace}}))
	})

	t.Run("in the place of a predecessor", func(t *testing.T) {
		_, err := e.Kubectl(t.Context(), strings.NewReader(predecessor), "apply", "-f", "-")
		require.NoError(t, err)
		_, err = e.Kubectl(t.Context(), nil, "wait", "--for=condition=Established", "--timeout=30s", "crd/nodemaintenances.nodemaintenance.medik8s.io")
		require.NoError(t, err)
		_, err = e.Kubectl(t.Context(), strings.NewReader(predecessorsObject), "create", "-f", "-")
		require.NoError(t, err)
		old := &appsv1.Deployment{}
		e.eventually(t, "the predecessor to run", func() bool {
			return e.Get(t.Context(), theDeployment, old) == nil && old.Status.ReadyReplicas == 1
		})

		out := e.manifests(t, "apply")

		require.NotContains(t, out, "would violate", "the predecessor's pod may break the rules, ours must not")
		require.Contains(t, out, "deployment.apps/"+theDeployment.Name+" configured")
		pods := e.replicas(t)
		for _, p := range pods {
			e.requireModest(t, p)
			require.Empty(t, p.Spec.Affinity, "nothing is left of the predecessor's")
			require.NotContains(t, volumeNames(p), "cert")
		}
		d := &appsv1.Deployment{}
		require.NoError(t, e.Get(t.Context(), theDeployment, d))
		require.Equal(t, old.UID, d.UID, "replaced in its place")
		role := &rbacv1.ClusterRole{}
		require.NoError(t, e.Get(t.Context(), client.ObjectKey{Name: "node-maintenance-operator-manager-role"}, role))
		for _, rule := range role.Rules {
			require.NotContains(t, rule.Verbs, "*")
			require.NotContains(t, rule.APIGroups, "oauth.openshift.io")
		}
		service := &corev1.Service{}
		require.NoError(t, e.Get(t.Context(), client.ObjectKey{Namespace: deploy.Namespace, Name: deploy.WebhookService}, service))
		require.Equal(t, theSelector, service.Spec.Selector)
		require.Len(t, service.Spec.Ports, 1)
		require.Equal(t, intstr.FromString("webhook"), service.Spec.Ports[0].TargetPort)
		hooks := e.webhooks(t)
		require.Len(t, hooks.Webhooks, 1)
		require.Len(t, hooks.Webhooks[0].MatchConditions, 1)
		e.requireBudget(t)
		nm := e.read(t, &v1beta1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "of-the-predecessor"}})
		require.Equal(t, "node-1", nm.Spec.NodeName, "what is under maintenance stays so")
	})
}

func volumeNames(p corev1.Pod) []string {
	var out []string
	for _, v := range p.Spec.Volumes {
		out = append(out, v.Name)
	}
	return out
}

func (e *env) webhooks(t *testing.T) *admissionv1.ValidatingWebhookConfiguration {
	t.Helper()
	config := &admissionv1.ValidatingWebhookConfiguration{}
	require.NoError(t, e.Get(t.Context(), client.ObjectKey{Name: deploy.WebhookConfig}, config))
	return config
}

// requireModest checks that a replica asks for no more than it needs.
func (e *env) requireModest(t *testing.T, p corev1.Pod) {
	t.Helper()
	require.Equal(t, "system-cluster-critical", p.Spec.PriorityClassName)
	require.Equal(t, ptr.To(true), p.Spec.SecurityContext.RunAsNonRoot)
	require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, p.Spec.SecurityContext.SeccompProfile.Type)
	require.Len(t, p.Spec.Containers, 1)
	c := p.Spec.Containers[0]
	require.Equal(t, ptr.To(true), c.SecurityContext.ReadOnlyRootFilesystem)
	require.Equal(t, ptr.To(false), c.SecurityContext.AllowPrivilegeEscalation)
	require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
	require.Empty(t, c.SecurityContext.Capabilities.Add)
	require.Contains(t, c.Args, "--leader-elect")
	for _, toleration := range p.Spec.Tolerations {
		require.NotContains(t, []string{"", "medik8s.io/drain", corev1.TaintNodeUnschedulable}, toleration.Key, "it leaves a node that it drains")
	}
}

// requireBudget checks that one replica at a time may be evicted.
func (e *env) requireBudget(t *testing.T) {
	t.Helper()
	var budgets policyv1.PodDisruptionBudgetList
	e.eventually(t, "the budget to allow one disruption", func() bool {
		require.NoError(t, e.List(t.Context(), &budgets, client.InNamespace(deploy.Namespace)))
		return len(budgets.Items) == 1 && budgets.Items[0].Status.DisruptionsAllowed == 1 && budgets.Items[0].Status.CurrentHealthy == 2
	})
	require.Equal(t, ptr.To(intstr.FromInt(1)), budgets.Items[0].Spec.MaxUnavailable)
	require.Equal(t, theSelector, budgets.Items[0].Spec.Selector.MatchLabels)
}

// predecessor is what an older operator of the same names may have left: other labels, ports, rights, volumes.
var predecessor = strings.ReplaceAll(`
apiVersion: v1
kind: Namespace
metadata: {name: NS, labels: {control-plane: controller-manager}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nodemaintenances.nodemaintenance.medik8s.io}
spec:
  group: nodemaintenance.medik8s.io
  names: {kind: NodeMaintenance, listKind: NodeMaintenanceList, plural: nodemaintenances, singular: nodemaintenance}
  scope: Cluster
  versions:
  - name: v1beta1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, required: [nodeName], properties: {nodeName: {type: string}, reason: {type: string}}}
          status:
            type: object
            properties: {phase: {type: string}, totalpods: {type: integer}, evictionPods: {type: integer}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: node-maintenance-operator-controller-manager, namespace: NS}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: node-maintenance-operator-manager-role}
rules:
- {apiGroups: [oauth.openshift.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: [""], resources: [namespaces], verbs: [get, create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: node-maintenance-operator-manager-rolebinding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: node-maintenance-operator-manager-role}
subjects: [{kind: ServiceAccount, name: node-maintenance-operator-controller-manager, namespace: NS}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: node-maintenance-operator-leader-election-role, namespace: NS}
rules:
- {apiGroups: ["", coordination.k8s.io], resources: [configmaps, leases], verbs: [get, list, watch, create, update, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: node-maintenance-operator-leader-election-rolebinding, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: node-maintenance-operator-leader-election-role}
subjects: [{kind: ServiceAccount, name: node-maintenance-operator-controller-manager, namespace: NS}]
---
apiVersion: v1
kind: Service
metadata: {name: node-maintenance-operator-webhook-service, namespace: NS, labels: {node-maintenance-operator: ""}}
spec:
  ports: [{port: 443, targetPort: 9443}]
  selector: {control-plane: controller-manager, node-maintenance-operator: "", app.kubernetes.io/component: controller-manager}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: node-maintenance-operator-controller-manager, namespace: NS, labels: {control-plane: controller-manager}}
spec:
  replicas: 1
  selector: {matchLabels: {control-plane: controller-manager, node-maintenance-operator: ""}}
  template:
    metadata: {labels: {control-plane: controller-manager, node-maintenance-operator: ""}}
    spec:
      serviceAccountName: node-maintenance-operator-controller-manager
      priorityClassName: system-cluster-critical
      terminationGracePeriodSeconds: 1
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]}]
      tolerations: [{key: node-role.kubernetes.io/master, effect: NoSchedule}]
      containers:
      - name: manager
        image: example.com/predecessor
        command: [/manager]
        args: [--health-probe-bind-address=:8081, --leader-elect]
        env: [{name: DEPLOYMENT_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}]
        ports: [{name: https, containerPort: 8443}, {name: webhook-server, containerPort: 9443}]
        livenessProbe: {httpGet: {path: /healthz, port: 8081}}
        readinessProbe: {httpGet: {path: /readyz, port: 8081}}
        resources: {limits: {cpu: 200m, memory: 100Mi}}
        volumeMounts: [{name: cert, mountPath: /tmp/k8s-webhook-server/serving-certs, readOnly: true}]
      volumes: [{name: cert, secret: {secretName: webhook-server-cert}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: node-maintenance-operator-validating-webhook-configuration}
webhooks:
- name: vnodemaintenance.kb.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig:
    service: {name: node-maintenance-operator-webhook-service, namespace: NS, path: /validate-nodemaintenance-medik8s-io-v1beta1-nodemaintenance}
  rules: [{apiGroups: [nodemaintenance.medik8s.io], apiVersions: [v1beta1], operations: [CREATE, UPDATE], resources: [nodemaintenances]}]
`, "NS", deploy.Namespace)

const predecessorsObject = `
apiVersion: nodemaintenance.medik8s.io/v1beta1
kind: NodeMaintenance
metadata: {name: of-the-predecessor}
spec: {nodeName: node-1}
`
