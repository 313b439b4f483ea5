// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	patience = 20 * time.Second
	tick     = 20 * time.Millisecond
)

// world is the shared cluster and a namespace of the test's own in it.
type world struct {
	*Cluster
	t  *testing.T
	ns string
}

func newWorld(t *testing.T) world {
	c, err := shared()
	require.NoError(t, err)
	ns, err := c.Client().CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	w := world{Cluster: c, t: t, ns: ns.Name}
	w.eventually("the namespace's service account exists", func() bool {
		_, err := c.Client().CoreV1().ServiceAccounts(w.ns).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	return w
}

func (w world) eventually(what string, f func() bool) {
	w.t.Helper()
	require.Eventually(w.t, f, patience, tick, what)
}

// pod makes a pod with the annotations, bound to a node by the scheduler.
func (w world) pod(name string, annotations map[string]string, change ...func(*corev1.Pod)) {
	w.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	for _, f := range change {
		f(p)
	}
	_, err := w.Client().CoreV1().Pods(w.ns).Create(w.t.Context(), p, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w world) get(name string) (*corev1.Pod, error) {
	return w.Client().CoreV1().Pods(w.ns).Get(w.t.Context(), name, metav1.GetOptions{})
}

// reaches waits until a pod has a phase and is ready or not.
func (w world) reaches(name string, phase corev1.PodPhase, ready corev1.ConditionStatus) *corev1.Pod {
	w.t.Helper()
	var got *corev1.Pod
	w.eventually("pod "+name+" is "+string(phase)+", ready "+string(ready), func() bool {
		p, err := w.get(name)
		got = p
		return err == nil && p.Status.Phase == phase && podReady(p) == ready
	})
	return got
}

func podReady(p *corev1.Pod) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status
		}
	}
	return corev1.ConditionFalse
}

func (w world) running(name string) {
	w.t.Helper()
	w.reaches(name, corev1.PodRunning, corev1.ConditionTrue)
}

func (w world) delete(name string) {
	w.t.Helper()
	require.NoError(w.t, w.Client().CoreV1().Pods(w.ns).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

func (w world) gone(name string) {
	w.t.Helper()
	w.eventually("pod "+name+" is gone", func() bool { _, err := w.get(name); return apierrors.IsNotFound(err) })
}

func (w world) annotate(name, key, value string) {
	w.t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	require.NoError(w.t, err)
	_, err = w.Client().CoreV1().Pods(w.ns).Patch(w.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(w.t, err)
}

func TestNodesAndDeployment(t *testing.T) {
	w := newWorld(t)
	nodes, err := w.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range nodes.Items {
		require.True(t, usable(&nodes.Items[i]), "%s is Ready and without taints", nodes.Items[i].Name)
	}
	w.eventually("each node has a lease that kwok renews", func() bool {
		l, err := w.Client().CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "node-1", metav1.GetOptions{})
		return err == nil && l.Spec.RenewTime != nil
	})

	replicas := int32(6)
	labels := map[string]string{"app": "web"}
	_, err = w.Client().AppsV1().Deployments(w.ns).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.eventually("the deployment is available", func() bool {
		d, err := w.Client().AppsV1().Deployments(w.ns).Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == replicas
	})
	pods, err := w.Client().CoreV1().Pods(w.ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, p := range pods.Items {
		require.NotEmpty(t, p.Spec.NodeName)
		require.Len(t, p.Status.ContainerStatuses, 1)
		require.NotEmpty(t, p.Status.HostIP)
		require.NotEmpty(t, p.Status.PodIP, "kwok gives it one, not always one of its own")
	}
	require.Len(t, pods.Items, int(replicas))
}

func TestPodsGo(t *testing.T) {
	w := newWorld(t)
	grace := func(seconds int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
	}
	tests := map[string]struct {
		reason string
		after  string
		grace  int64
		atLeast,
		under time.Duration
	}{
		"grace":     {reason: "a pod takes its grace period", grace: 2, atLeast: 2 * time.Second, under: 4 * time.Second},
		"shorter":   {reason: "the annotation beats the grace period", grace: 30, after: "300ms", atLeast: 300 * time.Millisecond, under: 2 * time.Second},
		"longer":    {reason: "a pod may overstay", grace: 1, after: "2s", atLeast: 2 * time.Second, under: 4 * time.Second},
		"at-once":   {reason: "no time at all is a time", grace: 30, after: "0s", under: 2 * time.Second},
		"nonsense":  {reason: "nonsense counts as nothing said", grace: 1, after: "soon", atLeast: time.Second, under: 3 * time.Second},
		"composite": {reason: "any Go duration works", grace: 30, after: "0m0.5s", atLeast: 500 * time.Millisecond, under: 2 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w.t = t
			var annotations map[string]string
			if tt.after != "" {
				annotations = map[string]string{GoneAfterAnnotation: tt.after}
			}
			w.pod(name, annotations, grace(tt.grace))
			w.running(name)
			start := time.Now()
			w.delete(name)
			w.gone(name)
			took := time.Since(start)
			require.GreaterOrEqual(t, took, tt.atLeast, tt.reason)
			require.Less(t, took, tt.under, tt.reason)
		})
	}
}

func TestPodsStay(t *testing.T) {
	w := newWorld(t)
	w.pod("never", map[string]string{GoneAfterAnnotation: "never"})
	w.pod("finalizer", map[string]string{GoneAfterAnnotation: "0s"}, func(p *corev1.Pod) {
		p.Finalizers = []string{"nodemaint.test/hold"}
	})
	w.pod("witness", map[string]string{GoneAfterAnnotation: "1s"})
	for _, name := range []string{"never", "finalizer", "witness"} {
		w.running(name)
	}
	for _, name := range []string{"never", "finalizer", "witness"} {
		w.delete(name)
	}
	w.gone("witness")
	for _, name := range []string{"never", "finalizer"} {
		p, err := w.get(name)
		require.NoError(t, err)
		require.NotNil(t, p.DeletionTimestamp, "%s is Terminating", name)
	}
	w.annotate("never", GoneAfterAnnotation, "0s")
	w.gone("never")
	_, err := w.Client().CoreV1().Pods(w.ns).Patch(t.Context(), "finalizer", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	w.gone("finalizer")
}

func TestPodsByAnnotation(t *testing.T) {
	w := newWorld(t)
	w.pod("pending", map[string]string{PodPhaseAnnotation: "Pending"})
	w.pod("succeeded", map[string]string{PodPhaseAnnotation: "Succeeded"})
	w.pod("failed", map[string]string{PodPhaseAnnotation: "Failed"})
	w.pod("unready", map[string]string{ReadyAnnotation: "false"})
	w.pod("plain", nil, func(p *corev1.Pod) {
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "none"}, {Name: "s", Image: "none", RestartPolicy: &always}}
	})
	w.reaches("succeeded", corev1.PodSucceeded, corev1.ConditionFalse)
	p := w.reaches("failed", corev1.PodFailed, corev1.ConditionFalse)
	require.EqualValues(t, 1, p.Status.ContainerStatuses[0].State.Terminated.ExitCode)
	w.reaches("unready", corev1.PodRunning, corev1.ConditionFalse)
	w.running("plain")

	w.annotate("plain", ReadyAnnotation, "false")
	w.reaches("plain", corev1.PodRunning, corev1.ConditionFalse)
	w.annotate("plain", ReadyAnnotation, "true")
	w.running("plain")

	p, err := w.get("pending")
	require.NoError(t, err)
	require.Equal(t, corev1.PodPending, p.Status.Phase)
	require.NotEmpty(t, p.Spec.NodeName, "Pending although it is bound")
	w.annotate("pending", PodPhaseAnnotation, "")
	w.running("pending")
}

func TestNodeByAnnotation(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.AddNode(t.Context(), "moody", NodeOptions{Pods: 5,
		Taints: []corev1.Taint{{Key: "moody", Effect: corev1.TaintEffectNoSchedule}}}))
	set := func(value string) {
		_, err := w.Client().CoreV1().Nodes().Patch(t.Context(), "moody", types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+ReadyAnnotation+`":"`+value+`"}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	is := func(want bool) {
		w.eventually("the node follows its annotation", func() bool {
			n, err := w.Client().CoreV1().Nodes().Get(t.Context(), "moody", metav1.GetOptions{})
			return err == nil && usable(n) == want
		})
	}
	set("false")
	is(false)
	set("true")
	is(true)
	require.NoError(t, w.Client().CoreV1().Nodes().Delete(t.Context(), "moody", metav1.DeleteOptions{}))
}

// kwok plays the pods of nodes whose lease it holds, and what it misses meanwhile it never makes up for.
func TestNodeMadeAgain(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.AddNode(t.Context(), "again", NodeOptions{}))
	require.NoError(t, w.Client().CoreV1().Nodes().Delete(t.Context(), "again", metav1.DeleteOptions{}))
	require.NoError(t, w.AddNode(t.Context(), "again", NodeOptions{}))

	n, err := w.Client().CoreV1().Nodes().Get(t.Context(), "again", metav1.GetOptions{})
	require.NoError(t, err)
	l, err := w.Client().CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "again", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, n.UID, l.OwnerReferences[0].UID, "the lease is this node's, so nobody deletes it for the one before")
	w.pod("itself", map[string]string{GoneAfterAnnotation: "0s"}, func(p *corev1.Pod) { p.Spec.NodeName = "again" })
	w.running("itself")
	w.delete("itself")
	w.gone("itself")
	require.NoError(t, w.Client().CoreV1().Nodes().Delete(t.Context(), "again", metav1.DeleteOptions{}))
}

func TestBudgetRefusesEviction(t *testing.T) {
	w := newWorld(t)
	w.pod("one", map[string]string{GoneAfterAnnotation: "0s"})
	w.running("one")
	one := intstr.FromInt32(1)
	_, err := w.Client().PolicyV1().PodDisruptionBudgets(w.ns).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "budget"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "one"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.eventually("the budget's status is there", func() bool {
		b, err := w.Client().PolicyV1().PodDisruptionBudgets(w.ns).Get(t.Context(), "budget", metav1.GetOptions{})
		return err == nil && b.Status.CurrentHealthy == 1 && b.Status.ObservedGeneration == b.Generation
	})
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: w.ns}}
	err = w.Client().PolicyV1().Evictions(w.ns).Evict(t.Context(), eviction)
	require.True(t, apierrors.IsTooManyRequests(err), "got %v", err)
	require.True(t, apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause))

	require.NoError(t, w.Client().PolicyV1().PodDisruptionBudgets(w.ns).Delete(t.Context(), "budget", metav1.DeleteOptions{}))
	w.eventually("without a budget the eviction is accepted", func() bool {
		return w.Client().PolicyV1().Evictions(w.ns).Evict(t.Context(), eviction) == nil
	})
	w.gone("one")
}

func TestServiceAccountTokenAndAudit(t *testing.T) {
	w := newWorld(t)
	_, err := w.Client().RbacV1().RoleBindings(w.ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns, Name: "default"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	path, err := w.ServiceAccountKubeconfig(t.Context(), w.ns, "default")
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	w.eventually("the account may read its namespace", func() bool {
		_, err := client.CoreV1().Pods(w.ns).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	_, err = client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "and nothing else; got %v", err)

	user := "system:serviceaccount:" + w.ns + ":default"
	w.eventually("the audit log has both", func() bool {
		events, err := w.ReadAudit(AuditFilter{User: user})
		require.NoError(t, err)
		var allowed, refused bool
		for _, e := range events {
			require.Equal(t, user, e.User)
			allowed = allowed || e.Resource == "pods" && e.Namespace == w.ns && e.Verb == "list" && e.Code == 200
			refused = refused || e.Resource == "nodes" && e.Code == 403 && e.UserAgent != ""
		}
		return allowed && refused
	})

	_, err = w.ServiceAccountKubeconfig(t.Context(), w.ns, "nobody")
	require.ErrorContains(t, err, w.ns+"/nobody")
}

func TestKubectl(t *testing.T) {
	w := newWorld(t)
	out, err := exec.CommandContext(t.Context(), w.KubectlPath, "--kubeconfig", w.Kubeconfig(), "version").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "Client Version: "+KubernetesVersion)
	require.Contains(t, string(out), "Server Version: "+KubernetesVersion)
}

func TestFaults(t *testing.T) {
	c, err := Start(t.Context(), Options{Name: "faults", Dir: filepath.Join(t.TempDir(), "d")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	_, err = c.AddNodes(t.Context(), 1, NodeOptions{})
	require.NoError(t, err)

	require.NoError(t, c.RestartAPIServer(t.Context()))
	_, err = c.Client().CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	require.NoError(t, err, "what was stored is still there, at the same address")

	for _, part := range Components() {
		require.NoError(t, c.Signal(part, syscall.SIGKILL))
		<-c.Exited(part)
		require.NoError(t, c.StopComponent(part), "stopping what has ended is no error")
		require.NoError(t, c.StartComponent(t.Context(), part), "%s comes back after kill -9", part)
		require.ErrorContains(t, c.StartComponent(t.Context(), part), "runs already")
	}
	require.NoError(t, c.AddNode(t.Context(), "node-2", NodeOptions{}), "all parts work together again")
	for _, part := range Components() {
		require.FileExists(t, c.LogFile(part))
	}
	require.NoError(t, c.Signal(Scheduler, syscall.SIGSTOP))

	start := time.Now()
	require.NoError(t, c.Stop())
	require.Less(t, time.Since(start), 2*time.Second, "also with a part that is stopped")
	require.NoError(t, c.Stop(), "stopping twice is no error")
	require.DirExists(t, c.Dir(), "a folder of the caller's stays")
	require.ErrorIs(t, c.StartComponent(t.Context(), Etcd), errStopped)
}
