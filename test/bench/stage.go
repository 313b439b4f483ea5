// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// namespace holds the pods that are to leave; peer is the service account of the peers in it.
const (
	namespace = "bench"
	peer      = "peer"
	peerUser  = "system:serviceaccount:" + namespace + ":" + peer
)

// load is what runs on the nodes to be drained.
type load struct {
	nodes int
	// perNode pods are on each node, one of each Deployment; up to 10 Deployments have a budget each.
	perNode    int
	daemonSets int
}

// spare is how many nodes there are for the pods that have left.
func (l load) spare() int { return max(2, l.nodes/2) }

// stage is a cluster with the operator's objects, on which a contender can be measured.
type stage struct {
	*deploy.Installation
	client.WithWatch
	nodes    []string // to be drained
	dir      string
	peer     string // a program
	tell     *teller
	operator *deploy.Process // once it runs
}

// setUp brings a cluster up, with nothing on it but the operator's objects and the rights of the peers.
func (b *bench) setUp(ctx context.Context) (*stage, error) {
	return b.setUpWith(ctx, cluster.Options{})
}

func (b *bench) setUpWith(ctx context.Context, o cluster.Options) (*stage, error) {
	s, err := b.bringUp(ctx, o, func(c *cluster.Cluster) (*deploy.Installation, error) {
		return deploy.Install(ctx, c, deploy.Options{Edit: withoutWebhook})
	})
	if err != nil {
		return nil, err
	}
	if err := s.allowPeers(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// bringUp brings a cluster up, on which installed puts, or finds, the operator's objects.
func (b *bench) bringUp(ctx context.Context, o cluster.Options, installed func(*cluster.Cluster) (*deploy.Installation, error)) (*stage, error) {
	b.tell.say("bringing a cluster up")
	dir, err := os.MkdirTemp(b.dir, "stage-")
	if err != nil {
		return nil, err
	}
	o.Binaries = b.binaries
	c, err := cluster.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, peer: b.peer, tell: b.tell}
	if s.Installation, err = installed(c); err == nil {
		s.WithWatch, err = client.NewWithWatch(c.RESTConfig(), client.Options{Scheme: deploy.Scheme()})
	}
	if err != nil {
		_ = c.Stop()
		return nil, err
	}
	return s, nil
}

// close ends what still runs.
func (s *stage) close() {
	if s.operator != nil {
		s.operator.Kill()
	}
	_ = s.Cluster.Stop()
}

// counting tells how many of the things there are have come about.
func (s *stage) counting(things string) func(have, want int) {
	return func(have, want int) { s.tell.count(have, want, things) }
}

// populate adds the nodes to be drained with their pods, and those where the pods can go.
func (s *stage) populate(ctx context.Context, l load) error {
	s.tell.say("putting %d pods on their nodes", l.nodes*l.perNode)
	var err error
	if s.nodes, err = s.Cluster.AddNodes(ctx, l.nodes, cluster.NodeOptions{Prefix: "drained-", Pods: 500}); err != nil {
		return err
	}
	for i := range l.daemonSets {
		if err := s.Create(ctx, daemonSet(fmt.Sprintf("agent-%d", i))); err != nil {
			return err
		}
	}
	names := l.deployments()
	for name, replicas := range names {
		if err := s.Create(ctx, deployment(name, replicas)); err != nil {
			return err
		}
		if err := s.Create(ctx, budget(name, intstr.FromString("50%"))); err != nil {
			return err
		}
	}
	if err := s.settle(ctx, names); err != nil {
		return err
	}
	// Where evicted pods can go; they come last, so that nothing is on them before.
	_, err = s.Cluster.AddNodes(ctx, l.spare(), cluster.NodeOptions{Prefix: "spare-", Pods: 500})
	return err
}

// deployments returns the number of replicas by name: one of each Deployment on each node, as far as ten
// Deployments suffice, more of each beyond.
func (l load) deployments() map[string]int {
	out := map[string]int{}
	for i := range min(l.perNode, 10) {
		out[fmt.Sprintf("app-%d", i)] = l.nodes * (l.perNode / min(l.perNode, 10))
	}
	return out
}

// settle waits until every pod is ready and every budget has counted its own.
func (s *stage) settle(ctx context.Context, replicas map[string]int) error {
	healthy := func(name string, want int) error {
		return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
			var b policyv1.PodDisruptionBudget
			err := s.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &b)
			return err == nil && int(b.Status.CurrentHealthy) == want && int(b.Status.ExpectedPods) == want, nil
		})
	}
	for name, n := range replicas {
		if err := healthy(name, n); err != nil {
			return fmt.Errorf("waiting for the %d pods of %s: %w", n, name, err)
		}
	}
	return nil
}

// allowPeers gives the peers their service account, with every right: kubectl asks for more than a drain.
func (s *stage) allowPeers(ctx context.Context) error {
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: peer}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "bench-peer"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: peer}},
		},
	} {
		if err := s.Create(ctx, o); err != nil {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return s.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{}) == nil, nil
	})
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		Containers:                    []corev1.Container{{Name: "main", Image: "example.com/none"}},
		AutomountServiceAccountToken:  ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To[int64](1),
	}
}

// template is of a pod that takes a second to go.
func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}, Annotations: map[string]string{cluster.GoneAfterAnnotation: "1s"}},
		Spec:       podSpec(),
	}
}

// deployment spreads its pods evenly over the nodes that are schedulable.
func deployment(name string, replicas int) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template(name),
		},
	}
	d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: d.Spec.Selector, NodeTaintsPolicy: ptr.To(corev1.NodeInclusionPolicyHonor),
	}}
	return d
}

func daemonSet(name string) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template(name)},
	}
	ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return ds
}

func budget(name string, maxUnavailable intstr.IntOrString) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &maxUnavailable, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
	}
}

// withoutWebhook leaves the webhook out: what it costs is not the drain's.
func withoutWebhook(u *unstructured.Unstructured) bool {
	return u.GetKind() != "ValidatingWebhookConfiguration"
}

func (s *stage) log(name string) string { return filepath.Join(s.dir, name+".log") }
