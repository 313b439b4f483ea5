// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// quickEnd is how long the operator may take to end when told to.
const quickEnd = 5 * time.Second

func TestTheOperatorComesAndGoes(t *testing.T) {
	t.Parallel()
	e := own(t, deploy.Options{})

	// blocked returns a maintenance that a budget holds up, and that budget.
	blocked := func(t *testing.T) (*v1beta1.NodeMaintenance, string, func()) {
		node, ns := e.node(t), e.namespace(t)
		e.pod(t, ns, "web-0", node, labelled(map[string]string{"app": "web"}))
		b := e.budget(t, ns, "web", 1, 1)
		nm := maintenanceOf(node, node)
		e.eventually(t, "the webhook to be believed", func() bool { return e.Create(t.Context(), nm) == nil })
		e.until(t, nm, "blocked", drainedReason(v1beta1.ReasonBlockedByBudget))
		return nm, ns, func() { e.relax(t, b) }
	}
	told := func(t *testing.T, nm *v1beta1.NodeMaintenance) {
		events := e.events(t, "NodeMaintenance", nm.Name)
		for _, reason := range []string{"BeginMaintenance", "SucceedMaintenance"} {
			require.Equal(t, 1, events[reason], reason)
		}
	}

	t.Run("it ends quickly and carries on", func(t *testing.T) {
		require.NoError(t, e.run(t.Context(), deploy.RunOptions{}))
		nm, ns, relax := blocked(t)
		began := e.read(t, nm).Status
		require.NoError(t, e.operator.Stop(3*quickEnd))
		require.Zero(t, e.operator.ExitCode())
		require.True(t, held(e.getNode(t, nm.Name)), "the node stays held meanwhile")

		posted := e.evictions(t, ns, "web-0")
		require.NoError(t, e.run(t.Context(), deploy.RunOptions{}))
		e.eventually(t, "another try", func() bool { return e.evictions(t, ns, "web-0") > posted })
		require.Equal(t, began.EvictionPods, e.read(t, nm).Status.EvictionPods)
		relax()
		e.succeed(t, nm)
		told(t, nm)
		e.end(t, nm)
		require.NoError(t, e.operator.Stop(3*quickEnd))
	})

	t.Run("it ends quickly with an eviction under way", func(t *testing.T) {
		require.NoError(t, e.run(t.Context(), deploy.RunOptions{}))
		node, ns := e.node(t), e.namespace(t)
		e.pod(t, ns, "lone", node)
		asked, lift := e.silence(t, ns, "lone")
		nm := maintenanceOf(node, node)
		e.eventually(t, "the webhook to be believed", func() bool { return e.Create(t.Context(), nm) == nil })
		select {
		case <-asked:
		case <-time.After(patience):
			require.Fail(t, "no eviction is under way")
		}
		require.NoError(t, e.operator.Stop(3*quickEnd))
		require.Zero(t, e.operator.ExitCode())
		lift()
		require.NoError(t, e.run(t.Context(), deploy.RunOptions{}))
		e.succeed(t, nm)
		told(t, nm)
		require.NoError(t, e.operator.Stop(3*quickEnd))
	})

	t.Run("it ends quickly though the API server hangs", func(t *testing.T) {
		require.NoError(t, e.run(t.Context(), deploy.RunOptions{Flags: []string{"--leader-elect"}}))
		e.eventually(t, "it to lead", func() bool { return leads(t, e.operator) })
		nm, _, relax := blocked(t)
		require.NoError(t, e.Cluster.Signal(cluster.APIServer, syscall.SIGSTOP))
		err := e.operator.Stop(3 * quickEnd)
		require.NoError(t, e.Cluster.Signal(cluster.APIServer, syscall.SIGCONT))
		require.NoError(t, err)
		require.Zero(t, e.operator.ExitCode())
		leadership := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.Namespace, Name: "135b1886.medik8s.io"}}
		require.NoError(t, e.Delete(t.Context(), leadership), "it could not be let go")
		require.NoError(t, e.run(t.Context(), deploy.RunOptions{}))
		relax()
		e.succeed(t, nm)
		require.NoError(t, e.operator.Stop(3*quickEnd))
	})

	t.Run("its own pod leaves last, when that is stored", func(t *testing.T) {
		const self = "the-operator-itself"
		require.NoError(t, e.run(t.Context(), deploy.RunOptions{Env: []string{"POD_NAME=" + self}}))
		node, ns := e.node(t), e.namespace(t)
		e.pod(t, deploy.Namespace, self, node, restricted)
		e.pod(t, deploy.Namespace, "another-replica", node, restricted)
		e.pod(t, ns, self, node, annotated(cluster.GoneAfterAnnotation, "1500ms"))
		pod := filmed[*corev1.Pod](t, e, &corev1.PodList{}, self)
		film := e.filmMaintenance(t, node)
		nm := maintenanceOf(node, node)
		e.eventually(t, "the webhook to be believed", func() bool { return e.Create(t.Context(), nm) == nil })
		e.succeed(t, nm)

		alone, _ := film.first(t, "it alone left", func(nm *v1beta1.NodeMaintenance) bool {
			return onlyPending(deploy.Namespace + "/" + self)(nm.Status)
		})
		require.Equal(t, v1beta1.ReasonDraining, conditionReason(alone.Status, v1beta1.ConditionDrained))
		require.Equal(t, 66, alone.Status.DrainProgress)
		require.Empty(t, alone.Status.LastError)
		going, _ := pod.first(t, "its pod going", func(p *corev1.Pod) bool {
			return p.Namespace == deploy.Namespace && p.DeletionTimestamp != nil
		})
		require.Less(t, version(t, alone), version(t, going), "the status comes first")
		require.Empty(t, e.podsOn(t, node))
		require.NoError(t, e.operator.Stop(3*quickEnd))
	})

	t.Run("it keeps leases where it is told", func(t *testing.T) {
		for _, row := range []struct{ told, namespace string }{{"other-leases", "other-leases"}, {"", "medik8s-leases"}} {
			require.NoError(t, e.run(t.Context(), deploy.RunOptions{Env: []string{"LEASE_NAMESPACE=" + row.told}}))
			node := e.node(t)
			nm := maintenanceOf(node, node)
			e.eventually(t, "the webhook to be believed", func() bool { return e.Create(t.Context(), nm) == nil })
			e.succeed(t, nm)
			var all coordinationv1.LeaseList
			require.NoError(t, e.List(t.Context(), &all, client.MatchingFields{"metadata.name": "node-" + node}))
			require.Len(t, all.Items, 1)
			require.Equal(t, row.namespace, all.Items[0].Namespace)
			e.end(t, nm)
			require.NoError(t, e.operator.Stop(3*quickEnd))
		}
	})

	t.Run("of two one acts and both answer", func(t *testing.T) {
		require.NoError(t, e.Delete(t.Context(), e.servingSecret(t)))
		second := port(t)
		a := e.runBare(t, deploy.RunOptions{Flags: []string{"--leader-elect"}})
		b := e.runBare(t, deploy.RunOptions{Flags: []string{"--leader-elect", "--webhook-port=" + strconv.Itoa(second)}})
		require.NoError(t, a.Ready(t.Context()))
		require.NoError(t, b.Ready(t.Context()))
		e.eventually(t, "one to lead", func() bool { return leads(t, a) || leads(t, b) })
		if leads(t, b) {
			a, b = b, a
		}
		same := func() bool {
			one, other := presented(t, e.WebhookPort), presented(t, second)
			return one != nil && other != nil && one.Equal(other) && bytes.Equal(one.Raw, leaf(e.servingSecret(t).Data["tls.crt"]))
		}
		e.eventually(t, "one certificate for both, which neither had", same)
		require.NoError(t, e.Delete(t.Context(), e.servingSecret(t)))
		e.within(t, renewal, "another for both", same)
		nm, _, relax := blocked(t)
		for _, at := range []int{e.WebhookPort, second} {
			review := askWebhook(t, at, reviewOf(t, maintenanceOf("another", nm.Name)))
			require.Equal(t, fmt.Sprintf("invalid nodeName, a NodeMaintenance for node %s already exists", nm.Name), review.Response.Result.Message)
		}
		require.NotEmpty(t, linesOf(t, a.Log, nm.Name))
		require.Empty(t, linesOf(t, b.Log, nm.Name))
		require.False(t, leads(t, b))

		a.Kill()
		relax()
		e.within(t, 20*time.Second, "the other to lead, once the lease of 15 s is over", func() bool { return leads(t, b) })
		e.succeed(t, nm)
		told(t, nm)
		require.NotEmpty(t, linesOf(t, b.Log, nm.Name))

		third := "--webhook-port=" + strconv.Itoa(port(t))
		a = e.runBare(t, deploy.RunOptions{Flags: []string{"--leader-elect", third}})
		require.NoError(t, a.Ready(t.Context()))
		require.NoError(t, b.Stop(3*quickEnd))
		require.Zero(t, b.ExitCode())
		e.within(t, 5*time.Second, "a leader at once, because the other has let go", func() bool { return leads(t, a) })
		e.end(t, nm)
		require.NotEmpty(t, linesOf(t, a.Log, nm.Name))
	})
}

func leads(t *testing.T, p *deploy.Process) bool {
	t.Helper()
	return strings.Contains(strings.ToLower(logOf(t, p)), "successfully acquired lease")
}

func version(t *testing.T, o client.Object) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	require.NoError(t, err)
	return v
}

// restricted makes a pod such that the operator's namespace admits it.
func restricted(p *corev1.Pod) {
	p.Spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// silence lets evictions in a namespace, of that pod for one, wait for an admission webhook that never answers. It returns what
// tells that it was asked, and how to end that.
func (e *env) silence(t *testing.T, namespace, pod string) (<-chan struct{}, func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	asked := make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }() // not before the end
			asked <- struct{}{}
		}
	}()
	hook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "silent.example.com", AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: ptr.To[int32](30),
			SideEffects: ptr.To(admissionv1.SideEffectClassNone), FailurePolicy: ptr.To(admissionv1.Fail),
			ClientConfig:      admissionv1.WebhookClientConfig{URL: ptr.To("https://" + l.Addr().String())},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}},
			}},
		}},
	}
	require.NoError(t, e.Create(t.Context(), hook))
	e.eventually(t, "evictions to wait", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		dry := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}}
		return errors.Is(e.Cluster.Client().PolicyV1().Evictions(namespace).Evict(ctx, dry), context.DeadlineExceeded)
	})
	for len(asked) > 0 {
		<-asked
	}
	return asked, func() {
		require.NoError(t, e.Delete(t.Context(), hook))
		require.NoError(t, l.Close())
	}
}
