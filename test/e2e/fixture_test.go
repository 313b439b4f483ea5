// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// patience is how long a test waits for what comes in a second or two on a machine with nothing else to do.
const patience = 60 * time.Second

// own brings up a cluster of the test's own, the operator running unless the test says otherwise.
func own(t *testing.T, d deploy.Options) *env {
	t.Helper()
	e, err := bringUp(t.Context(), cluster.Options{}, d, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, errors.Join(asked.note(e), e.Cluster.Stop())) })
	return e
}

// start runs the operator of an own cluster until the test ends.
func (e *env) start(t *testing.T, o deploy.RunOptions) {
	t.Helper()
	require.NoError(t, e.run(t.Context(), o))
	t.Cleanup(func() { e.operator.Kill() })
}

// short returns a name of the test that fits into names of objects.
func short(t *testing.T) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case r == '/' || r == '_':
			return '-'
		default:
			return -1
		}
	}, strings.ToLower(strings.TrimPrefix(t.Name(), "Test")))
	if len(s) > 40 {
		s = s[:40]
	}
	return strings.Trim(s, "-")
}

// node makes one node of the test's own and removes it with the test.
func (e *env) node(t *testing.T) string {
	t.Helper()
	return e.nodes(t, 1)[0]
}

func (e *env) nodes(t *testing.T, n int) []string {
	t.Helper()
	names, err := e.Cluster.AddNodes(t.Context(), n, cluster.NodeOptions{Prefix: short(t) + "-" + suffix(t) + "-", Labels: oldLabels()})
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, name := range names {
			_ = e.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	})
	return names
}

// oldLabels are what kube-controller-manager would add to a node some time later.
func oldLabels() map[string]string {
	return map[string]string{"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64"}
}

// suffix tells two calls of one test apart.
func suffix(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("%05x", time.Now().UnixNano()/1000%0xfffff)
}

// namespace makes a namespace of the test's own in which pods can be created.
func (e *env) namespace(t *testing.T) string {
	t.Helper()
	name := short(t) + "-" + suffix(t)
	require.NoError(t, e.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	t.Cleanup(func() {
		_ = e.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
	e.eventually(t, "the service account of namespace "+name, func() bool {
		return e.Get(t.Context(), types.NamespacedName{Namespace: name, Name: "default"}, &corev1.ServiceAccount{}) == nil
	})
	return name
}

// eventually waits until cond holds, patience at most.
func (e *env) eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	require.True(t, waitFor(cond, patience), "waiting for %s", what)
}

// within is eventually with a deadline of the behaviour's own; the machine gets three times as long.
func (e *env) within(t *testing.T, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	require.True(t, waitFor(cond, 3*limit), "waiting for %s", what)
}

// pod makes a pod that is bound to the node at once and waits until it runs. Edit may change it first.
func (e *env) pod(t *testing.T, namespace, name, node string, edit ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{cluster.GoneAfterAnnotation: "100ms"}},
		Spec:       podSpec(),
	}
	p.Spec.NodeName = node
	for _, f := range edit {
		f(p)
	}
	require.NoError(t, e.Create(t.Context(), p))
	if p.Annotations[cluster.PodPhaseAnnotation] == "" {
		e.eventually(t, "pod "+name+" to run", func() bool {
			return e.Get(t.Context(), client.ObjectKeyFromObject(p), p) == nil && p.Status.Phase == corev1.PodRunning
		})
	}
	return p
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		Containers:                    []corev1.Container{{Name: "main", Image: "example.com/none"}},
		TerminationGracePeriodSeconds: ptr.To[int64](1),
		AutomountServiceAccountToken:  ptr.To(false),
	}
}

func labelled(labels map[string]string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = labels }
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

// deployment makes a Deployment whose pods run on that node, and waits for them. Pods that are evicted
// come back Pending as long as the node is cordoned.
func (e *env) deployment(t *testing.T, namespace, name, node string, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": name}
	spec := podSpec()
	spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{cluster.GoneAfterAnnotation: "100ms"}}, Spec: spec,
			},
		},
	}
	require.NoError(t, e.Create(t.Context(), d))
	e.eventually(t, "deployment "+name+" to be ready", func() bool {
		return e.Get(t.Context(), client.ObjectKeyFromObject(d), d) == nil && d.Status.ReadyReplicas == replicas
	})
}

// budget makes a budget for the pods with label app=name and waits until the disruption controller has
// counted them.
func (e *env) budget(t *testing.T, namespace, name string, minAvailable, pods int) *policyv1.PodDisruptionBudget {
	t.Helper()
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt(minAvailable)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	}
	require.NoError(t, e.Create(t.Context(), b))
	e.eventually(t, "budget "+name+" to count its pods", func() bool {
		return e.Get(t.Context(), client.ObjectKeyFromObject(b), b) == nil && b.Status.ObservedGeneration == b.Generation &&
			int(b.Status.CurrentHealthy) == pods
	})
	return b
}

// relax lets a budget allow everything.
func (e *env) relax(t *testing.T, b *policyv1.PodDisruptionBudget) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minAvailable":0}}`))
	require.NoError(t, e.Patch(t.Context(), b, patch))
}

// maintain puts the node under maintenance by an object of the node's name, and removes it with the test.
func (e *env) maintain(t *testing.T, node string) *v1beta1.NodeMaintenance {
	t.Helper()
	nm := &v1beta1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: v1beta1.NodeMaintenanceSpec{NodeName: node, Reason: t.Name()}}
	require.NoError(t, e.Create(t.Context(), nm))
	t.Cleanup(func() { _ = e.Delete(context.Background(), nm) })
	return nm
}

// read returns the object as it is now.
func (e *env) read(t *testing.T, nm *v1beta1.NodeMaintenance) *v1beta1.NodeMaintenance {
	t.Helper()
	now := &v1beta1.NodeMaintenance{}
	require.NoError(t, e.Get(t.Context(), client.ObjectKeyFromObject(nm), now))
	return now
}

// until waits until the object's status is as asked for, and returns the object.
func (e *env) until(t *testing.T, nm *v1beta1.NodeMaintenance, what string, cond func(v1beta1.NodeMaintenanceStatus) bool) *v1beta1.NodeMaintenance {
	t.Helper()
	now := &v1beta1.NodeMaintenance{}
	ok := func() bool {
		return e.Get(t.Context(), client.ObjectKeyFromObject(nm), now) == nil && cond(now.Status)
	}
	if !waitFor(ok, patience) {
		require.Fail(t, "NodeMaintenance "+nm.Name+" is not "+what, "status %+v", now.Status)
	}
	return now
}

// waitFor asks in the test's own goroutine, unlike require.Eventually, so that ok may use require.
func waitFor(ok func() bool, limit time.Duration) bool {
	deadline := time.After(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok() {
			return true
		}
		select {
		case <-deadline:
			return false
		case <-tick.C:
		}
	}
}

func inPhase(p v1beta1.MaintenancePhase) func(v1beta1.NodeMaintenanceStatus) bool {
	return func(s v1beta1.NodeMaintenanceStatus) bool { return s.Phase == p }
}

// succeed waits until the maintenance has succeeded.
func (e *env) succeed(t *testing.T, nm *v1beta1.NodeMaintenance) *v1beta1.NodeMaintenance {
	t.Helper()
	return e.until(t, nm, "Succeeded", inPhase(v1beta1.MaintenanceSucceeded))
}

// end deletes the object and waits until it is gone.
func (e *env) end(t *testing.T, nm *v1beta1.NodeMaintenance) {
	t.Helper()
	require.NoError(t, e.Delete(t.Context(), nm))
	e.gone(t, nm)
}

// gone waits until an object does not exist any more.
func (e *env) gone(t *testing.T, o client.Object) {
	t.Helper()
	e.eventually(t, fmt.Sprintf("%T %s to go", o, o.GetName()), func() bool {
		return client.IgnoreNotFound(e.Get(t.Context(), client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))) == nil && !e.exists(t, o)
	})
}

func (e *env) exists(t *testing.T, o client.Object) bool {
	t.Helper()
	return e.Get(t.Context(), client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object)) == nil
}

// getNode returns the node as it is now.
func (e *env) getNode(t *testing.T, name string) *corev1.Node {
	t.Helper()
	n := &corev1.Node{}
	require.NoError(t, e.Get(t.Context(), client.ObjectKey{Name: name}, n))
	return n
}

// editNode changes a node as another writer would.
func (e *env) editNode(t *testing.T, name string, edit func(*corev1.Node)) {
	t.Helper()
	e.eventually(t, "node "+name+" to be written", func() bool {
		n := e.getNode(t, name)
		edit(n)
		return e.Update(t.Context(), n) == nil
	})
}

// lease returns the lease of the node; nil if there is none.
func (e *env) lease(t *testing.T, node string) *coordinationv1.Lease {
	t.Helper()
	l := &coordinationv1.Lease{}
	err := e.Get(t.Context(), types.NamespacedName{Namespace: "medik8s-leases", Name: "node-" + node}, l)
	if client.IgnoreNotFound(err) != nil {
		require.NoError(t, err)
	}
	if err != nil {
		return nil
	}
	return l
}

// events returns how many events with each reason there are on an object of that kind and name.
func (e *env) events(t *testing.T, kind, name string) map[string]int {
	t.Helper()
	var all corev1.EventList
	require.NoError(t, e.List(t.Context(), &all, client.InNamespace("default")))
	out := map[string]int{}
	for _, ev := range all.Items {
		if ev.InvolvedObject.Kind == kind && ev.InvolvedObject.Name == name {
			out[ev.Reason] += int(max(ev.Count, 1))
		}
	}
	return out
}

// podsOn returns the names of the pods bound to the node.
func (e *env) podsOn(t *testing.T, node string) []string {
	t.Helper()
	var all corev1.PodList
	require.NoError(t, e.List(t.Context(), &all, client.MatchingFields{"spec.nodeName": node}))
	var names []string
	for _, p := range all.Items {
		names = append(names, p.Name)
	}
	return names
}

// posted returns the evictions that the operator has posted, whatever the answer.
func (e *env) posted(t *testing.T) []cluster.AuditEvent {
	t.Helper()
	events, err := e.Cluster.ReadAudit(cluster.AuditFilter{User: deploy.User, Verb: "create"})
	require.NoError(t, err)
	return slices.DeleteFunc(events, func(ev cluster.AuditEvent) bool { return ev.Resource != "pods" || ev.Subresource != "eviction" })
}

// evictions returns how many evictions the operator has posted for the pod.
func (e *env) evictions(t *testing.T, namespace, pod string) int {
	t.Helper()
	n := 0
	for _, ev := range e.posted(t) {
		if ev.Namespace == namespace && ev.Name == pod {
			n++
		}
	}
	return n
}
