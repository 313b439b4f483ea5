// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/cluster"
)

func pendingRefs(s v1beta1.NodeMaintenanceStatus) []string {
	var out []string
	for _, p := range s.PendingPodsRefs {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	return out
}

func onlyPending(refs ...string) func(v1beta1.NodeMaintenanceStatus) bool {
	return func(s v1beta1.NodeMaintenanceStatus) bool { return slices.Equal(pendingRefs(s), refs) }
}

func TestABudgetBlocksItsPodAndNoOther(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.pod(t, ns, "web-0", node, labelled(map[string]string{"app": "web"}))
	e.pod(t, ns, "lone", node)
	b := e.budget(t, ns, "web", 1, 1)
	nm := e.maintain(t, node)

	now := e.until(t, nm, "left with the blocked pod", onlyPending(ns+"/web-0"))

	require.Equal(t, v1beta1.MaintenanceRunning, now.Status.Phase)
	require.Equal(t, 50, now.Status.DrainProgress)
	require.Equal(t, ns+"/web-0: budget "+ns+"/web needs 1 healthy pods and has 1", now.Status.LastError)
	require.Equal(t, []string{"web-0"}, e.podsOn(t, node), "nothing is deleted past a budget")
	require.Equal(t, 1, e.events(t, "NodeMaintenance", nm.Name)["PodBlocked"])
	e.relax(t, b)
	require.Empty(t, e.succeed(t, nm).Status.LastError)
	require.Equal(t, 1, e.events(t, "NodeMaintenance", nm.Name)["PodBlocked"], "a retry is no news")
}

func TestFiftyBlockedNodesDoNotHoldUpACleanOne(t *testing.T) {
	t.Parallel()
	e := shared
	ns, nodes := e.namespace(t), e.nodes(t, 51)
	blocked, clean := nodes[:50], nodes[50]
	for i, node := range blocked {
		e.pod(t, ns, fmt.Sprintf("web-%d", i), node, labelled(map[string]string{"app": "web"}))
	}
	e.pod(t, ns, "lone", clean)
	b := e.budget(t, ns, "web", 50, 50)
	for _, node := range blocked {
		e.maintain(t, node)
	}
	nm := e.maintain(t, clean)

	e.within(t, 5*time.Second, "the clean node", func() bool { return e.read(t, nm).Status.Phase == v1beta1.MaintenanceSucceeded })

	e.relax(t, b)
}

func TestADeleteDuringABlockedDrainGivesTheNodeBackAtOnce(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.pod(t, ns, "web-0", node, labelled(map[string]string{"app": "web"}))
	e.budget(t, ns, "web", 1, 1)
	nm := e.maintain(t, node)
	e.until(t, nm, "blocked", drainedReason(v1beta1.ReasonBlockedByBudget))

	require.NoError(t, e.Delete(t.Context(), nm))

	e.within(t, 3*time.Second, "the node to be schedulable", func() bool { return !e.getNode(t, node).Spec.Unschedulable })
	e.gone(t, nm)
	posted := e.evictions(t, ns, "web-0")
	require.Never(t, func() bool { return e.evictions(t, ns, "web-0") != posted }, 6*time.Second, 500*time.Millisecond, "an eviction after the end")
}

func TestATerminatingPodIsWaitedForAndNeverEvicted(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	p := e.pod(t, ns, "web-0", node, labelled(map[string]string{"app": "web"}), annotated(cluster.GoneAfterAnnotation, "never"))
	e.budget(t, ns, "web", 1, 1)
	require.NoError(t, e.Delete(t.Context(), p))
	nm := e.maintain(t, node)

	now := e.until(t, nm, "waiting", drainedReason(v1beta1.ReasonTerminating))

	require.Equal(t, []string{ns + "/web-0"}, pendingRefs(now.Status))
	require.Empty(t, now.Status.LastError, "a pod that takes its time is no error")
	require.NoError(t, e.Delete(t.Context(), p, client.GracePeriodSeconds(0)))
	e.succeed(t, nm)
	require.Zero(t, e.evictions(t, ns, "web-0"))
}

func TestAStatefulSetPodThatComesUpElsewhereCountsAsGone(t *testing.T) {
	t.Parallel()
	e := shared
	nodes, ns := e.nodes(t, 2), e.namespace(t)
	e.editNode(t, nodes[1], func(n *corev1.Node) { n.Spec.Unschedulable = true })
	spec := podSpec()
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: "In", Values: nodes}}}},
	}}}
	labels := map[string]string{"app": "db"}
	require.NoError(t, e.Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db"},
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{cluster.GoneAfterAnnotation: "100ms"}}, Spec: spec,
		}},
	}))
	e.eventually(t, "db-0 on the first node", func() bool { return slices.Equal(e.podsOn(t, nodes[0]), []string{"db-0"}) })
	e.editNode(t, nodes[1], func(n *corev1.Node) { n.Spec.Unschedulable = false })

	e.succeed(t, e.maintain(t, nodes[0]))

	e.eventually(t, "db-0 on the other node", func() bool { return slices.Equal(e.podsOn(t, nodes[1]), []string{"db-0"}) })
	require.Equal(t, 1, e.evictions(t, ns, "db-0"))
}

func TestAPolicyThatDeniesAnEvictionFailsThatPodOnly(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.pod(t, ns, "precious", node)
	e.pod(t, ns, "other", node)
	lift := e.deny(t, ns, "precious", "the night shift says no")
	nm := e.maintain(t, node)

	now := e.until(t, nm, "left with the denied pod", onlyPending(ns+"/precious"))

	require.Contains(t, now.Status.LastError, ns+"/precious: ")
	require.Contains(t, now.Status.LastError, "the night shift says no")
	require.Equal(t, v1beta1.ReasonEvictionRefused, conditionReason(now.Status, v1beta1.ConditionDrained))
	lift()
	e.succeed(t, nm)
}

// deny lets the API server refuse evictions of one pod, and returns how to lift that.
func (e *env) deny(t *testing.T, namespace, pod, words string) func() {
	t.Helper()
	name := namespace + "-" + pod
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("!(object.metadata.namespace == %q && object.metadata.name == %q)", namespace, pod), Message: words,
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	require.NoError(t, e.Create(t.Context(), policy))
	require.NoError(t, e.Create(t.Context(), binding))
	e.eventually(t, "the policy to be in force", func() bool {
		dry := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}}
		return e.Cluster.Client().PolicyV1().Evictions(namespace).Evict(t.Context(), dry) != nil
	})
	return func() {
		require.NoError(t, e.Delete(t.Context(), binding))
		require.NoError(t, e.Delete(t.Context(), policy))
	}
}

func TestTwoBudgetsForAPodAreBothNamed(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.pod(t, ns, "web-0", node, labelled(map[string]string{"app": "web"}))
	e.budget(t, ns, "web", 0, 1)
	second := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "all"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
	}
	require.NoError(t, e.Create(t.Context(), second))
	e.eventually(t, "the second budget", func() bool {
		return e.Get(t.Context(), client.ObjectKeyFromObject(second), second) == nil && second.Status.ObservedGeneration == 1
	})
	nm := e.maintain(t, node)

	now := e.until(t, nm, "blocked", drainedReason(v1beta1.ReasonBlockedByBudget))

	require.Contains(t, now.Status.LastError, ns+"/all")
	require.Contains(t, now.Status.LastError, ns+"/web")
	require.NoError(t, e.Delete(t.Context(), second))
	e.succeed(t, nm)
}

func TestPodsOfOneNameInTwoNamespacesAreToldApart(t *testing.T) {
	t.Parallel()
	e := shared
	node, first, second := e.node(t), e.namespace(t), e.namespace(t)
	for _, ns := range []string{first, second} {
		e.pod(t, ns, "web-0", node, labelled(map[string]string{"app": "web"}))
		e.budget(t, ns, "web", 1, 1)
	}
	nm := e.maintain(t, node)

	want := []string{first + "/web-0", second + "/web-0"}
	slices.Sort(want)
	now := e.until(t, nm, "blocked in both", func(s v1beta1.NodeMaintenanceStatus) bool {
		return slices.Equal(pendingRefs(s), want) && drainedReason(v1beta1.ReasonBlockedByBudget)(s)
	})

	require.Equal(t, []string{"web-0", "web-0"}, now.Status.PendingPods)
	require.Contains(t, now.Status.LastError, first+"/web-0: budget "+first+"/web")
	require.Contains(t, now.Status.LastError, second+"/web-0: budget "+second+"/web")
}

// Which pods stay and which leave is what kubectl drain would do with all of its consents.
func TestWhichPodsLeave(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.daemonSet(t, ns, "proxy", node, nil)
	e.daemonSet(t, ns, "crashing", node, map[string]string{cluster.PodPhaseAnnotation: "Failed"})
	e.daemonSet(t, ns, "abandoned", node, nil)
	require.NoError(t, e.Delete(t.Context(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "abandoned"}}, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	e.eventually(t, "the DaemonSet to be gone", func() bool {
		return !e.exists(t, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "abandoned"}})
	})
	e.pod(t, ns, "scratch", node, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	})
	e.pod(t, ns, "finished", node, annotated(cluster.PodPhaseAnnotation, "Succeeded"), func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever })
	e.pod(t, ns, "static", node, annotated(corev1.MirrorPodAnnotationKey, "demo"))
	nm := e.maintain(t, node)

	e.succeed(t, nm)

	for _, name := range e.podsOn(t, node) {
		require.Regexp(t, `^(proxy|crashing)-|^static$`, name, "what is left")
	}
	require.Contains(t, e.podsOn(t, node), "static")
	for _, gone := range []string{"scratch", "finished"} {
		require.Equal(t, 1, e.evictions(t, ns, gone), gone)
	}
	evicted := e.evicted(t, ns)
	require.Len(t, evicted, 3, "scratch, finished and the orphan of the DaemonSet: %v", evicted)
}

// evicted returns the names of the pods in the namespace that the operator has posted evictions for.
func (e *env) evicted(t *testing.T, namespace string) []string {
	t.Helper()
	var names []string
	for _, ev := range e.posted(t) {
		if ev.Namespace == namespace && !slices.Contains(names, ev.Name) {
			names = append(names, ev.Name)
		}
	}
	return names
}

// daemonSet makes a DaemonSet that runs on that node alone, and waits for its pod.
func (e *env) daemonSet(t *testing.T, namespace, name, node string, annotations map[string]string) {
	t.Helper()
	labels := map[string]string{"app": name}
	spec := podSpec()
	spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}, Spec: spec,
		}},
	}
	require.NoError(t, e.Create(t.Context(), ds))
	e.eventually(t, "DaemonSet "+name+" to have its pod", func() bool {
		return e.Get(t.Context(), client.ObjectKeyFromObject(ds), ds) == nil && ds.Status.CurrentNumberScheduled == 1
	})
}

func TestThreeHundredPodsCostAboutARequestEach(t *testing.T) {
	t.Parallel()
	e := shared
	ns := e.namespace(t)
	names, err := e.Cluster.AddNodes(t.Context(), 1, cluster.NodeOptions{Prefix: short(t) + "-" + suffix(t) + "-", Pods: 400})
	require.NoError(t, err)
	for i := range 300 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("p-%d", i), Annotations: map[string]string{cluster.GoneAfterAnnotation: "1s"}}, Spec: podSpec()}
		p.Spec.NodeName = names[0]
		require.NoError(t, e.Create(t.Context(), p))
	}
	e.eventually(t, "the pods to run", func() bool {
		var all corev1.PodList
		require.NoError(t, e.List(t.Context(), &all, client.InNamespace(ns)))
		return !slices.ContainsFunc(all.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })
	})

	e.succeed(t, e.maintain(t, names[0]))

	posts := 0
	for _, ev := range e.posted(t) {
		if ev.Namespace == ns {
			posts++
		}
	}
	require.Equal(t, 300, posts, "one eviction a pod")
}
