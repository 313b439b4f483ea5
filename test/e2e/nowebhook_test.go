// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// What needs a cluster of its own, since it stops the operator, takes its rights away, or makes objects that
// the webhook would refuse.
func TestWithoutTheWebhook(t *testing.T) {
	t.Parallel()
	e := own(t, deploy.Options{Edit: func(u *unstructured.Unstructured) bool { return u.GetKind() != "ValidatingWebhookConfiguration" }})
	run := func(env ...string) {
		e.start(t, deploy.RunOptions{Flags: []string{"--enable-webhooks=false"}, Env: env})
	}

	t.Run("what the operator finds when it starts", func(t *testing.T) { e.testStart(t, func() { run() }) })
	var lost lostLease
	t.Run("together", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *env){
			"the earliest object acts":                        testTheEarliestObjectActs,
			"an object that only waited goes without a trace": testAnObjectThatOnlyWaitedGoesWithoutATrace,
			"of two in one second the smaller name acts":      testOfTwoInOneSecondTheSmallerNameActs,
			"an object that failed makes room":                testAnObjectThatFailedMakesRoom,
			"a node that never was":                           testANodeThatNeverWas,
			"the lease is lost for good after the drain":      func(t *testing.T, e *env) { lost = testTheLeaseIsLostForGood(t, e) },
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); test(t, e) })
		}
	})
	t.Run("what was given up stays so after a restart", func(t *testing.T) { lost.testRestart(t, e, func() { e.restart(t, run) }) })
	t.Run("an object goes while no operator runs", func(t *testing.T) { testAnObjectGoesWhileNoOperatorRuns(t, e, run) })
	t.Run("the namespace of the leases is deleted", func(t *testing.T) { testTheNamespaceOfTheLeasesIsDeleted(t, e) })
	t.Run("the right to leases is taken away", func(t *testing.T) { testTheRightToLeasesIsTakenAway(t, e) })
	t.Run("leases in a namespace that the environment names", func(t *testing.T) {
		e.restart(t, func(...string) { run("LEASE_NAMESPACE=leases-elsewhere") })
		node := e.node(t)
		nm := e.maintain(t, node)
		e.succeed(t, nm)
		l := &coordinationv1.Lease{}
		require.NoError(t, e.Get(t.Context(), client.ObjectKey{Namespace: "leases-elsewhere", Name: "node-" + node}, l))
		require.Nil(t, e.lease(t, node))
		e.end(t, nm)
		e.gone(t, l)
	})
	t.Run("an empty variable names none", func(t *testing.T) {
		e.restart(t, func(...string) { run("LEASE_NAMESPACE=") })
		node := e.node(t)
		e.succeed(t, e.maintain(t, node))
		e.requireOurs(t, node)
	})
}

// restart ends the operator as a rollout would and starts it again.
func (e *env) restart(t *testing.T, run func(env ...string)) {
	t.Helper()
	require.NoError(t, e.operator.Stop(3*5*time.Second))
	run()
}

// The next operator gives back what an object left that went without a word.
func testAnObjectGoesWhileNoOperatorRuns(t *testing.T, e *env, run func(env ...string)) {
	node := e.node(t)
	before := e.getNode(t, node)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	e.restart(t, func(...string) {
		e.dropFinalizers(t, nm)
		e.end(t, nm)
		require.NotNil(t, e.lease(t, node))
		run()
	})
	e.eventually(t, "the lease to go", func() bool { return e.lease(t, node) == nil })
	after := e.getNode(t, node)
	require.Equal(t, before.Spec, after.Spec)
	require.Equal(t, before.Labels, after.Labels)
	require.Equal(t, before.Annotations, after.Annotations)
	require.Equal(t, 1, e.events(t, "Node", node)["UncordonNode"])
}

func (e *env) testStart(t *testing.T, run func()) {
	err := e.Get(t.Context(), client.ObjectKey{Name: leaseNamespace}, &corev1.Namespace{})
	require.True(t, client.IgnoreNotFound(err) == nil && err != nil, "nobody has made the namespace of the leases")
	fresh := e.node(t)
	unseen := e.maintain(t, fresh)
	raw, err := e.Kubectl(t.Context(), nil, "get", "nm", unseen.Name, "-o", "json")
	require.NoError(t, err)
	require.NotContains(t, raw, "lastUpdate", "absent, not null")

	going := e.goingWithoutOurFinalizer(t)
	e.cordon(t, going.Spec.NodeName)
	begin := time.Now()
	running := e.leaveBehind(t, ourHolder, v1beta1.NodeMaintenanceStatus{
		Phase: v1beta1.MaintenanceRunning, EvictionPods: 5, DrainProgress: 60, PendingPods: []string{"one", "two"},
	}, 1)
	finished := v1beta1.NodeMaintenanceStatus{Phase: v1beta1.MaintenanceSucceeded, EvictionPods: 5, DrainProgress: 100}
	succeeded, taken := e.leaveBehind(t, ourHolder, finished, 2), e.leaveBehind(t, "another", finished, 0)

	run()

	e.succeed(t, unseen)
	e.requireOurs(t, fresh)
	t.Run("a running maintenance of an operator without records", func(t *testing.T) { running.testIsTakenOver(t, e) })
	t.Run("a finished one", func(t *testing.T) { succeeded.testIsTakenOver(t, e) })
	t.Run("one whose lease was taken meanwhile", func(t *testing.T) { taken.testIsLeftAlone(t, e, begin) })
	require.Zero(t, e.nodeWrites(t, going.Spec.NodeName, begin), "an object that goes and never was ours")
	require.Nil(t, e.lease(t, going.Spec.NodeName))
	require.Empty(t, e.eventsOf(t, "NodeMaintenance", going.Name))
}

// goingWithoutOurFinalizer makes an object that is being deleted before the operator has seen it, and that
// somebody else's finalizer keeps.
func (e *env) goingWithoutOurFinalizer(t *testing.T) *v1beta1.NodeMaintenance {
	t.Helper()
	node := e.node(t)
	nm := maintenanceOf(node, node)
	nm.Finalizers = []string{"example.com/keep"}
	require.NoError(t, e.Create(t.Context(), nm))
	t.Cleanup(func() { e.dropFinalizers(t, nm) })
	require.NoError(t, e.Delete(t.Context(), nm))
	return nm
}

func testANodeThatNeverWas(t *testing.T, e *env) {
	name := "never-" + suffix(t)
	film := e.filmMaintenance(t, name)
	nm := e.maintain(t, name)

	failed := e.until(t, nm, "Failed", inPhase(v1beta1.MaintenanceFailed))
	require.Equal(t, `nodes "`+name+`" not found`, failed.Status.LastError)
	requireConditions(t, failed, map[string]string{"Ready": "False Failed", "Stalled": "True NodeNotFound"})
	require.Empty(t, failed.Finalizers)
	require.Empty(t, failed.OwnerReferences)
	require.Nil(t, e.lease(t, name))
	e.passed(t, nm)

	begin := time.Now()
	require.NoError(t, e.Cluster.AddNode(t.Context(), name, cluster.NodeOptions{}))
	t.Cleanup(func() { _ = e.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}) })
	require.Equal(t, v1beta1.MaintenanceFailed, e.passed(t, nm).Status.Phase, "given up for good")
	require.Zero(t, e.nodeWrites(t, name, begin))
	e.end(t, nm)
	require.Equal(t, map[string]int{"FailedMaintenance": 1}, e.events(t, "NodeMaintenance", name))
	ev := e.eventsOf(t, "NodeMaintenance", name)[0]
	require.Equal(t, "Warning Failed a node maintenance", ev.Type+" "+ev.Message)
	require.Equal(t, []v1beta1.MaintenancePhase{"", v1beta1.MaintenanceFailed}, phases(t, film))
}

// lostLease is a maintenance that was given up since another has the lease.
type lostLease struct {
	node string
	nm   *v1beta1.NodeMaintenance
}

func testTheLeaseIsLostForGood(t *testing.T, e *env) lostLease {
	node := e.nodeBeyond(t)
	before := e.getNode(t, node)
	nm := maintenanceOf(node, node)
	require.NoError(t, e.Create(t.Context(), nm))
	e.succeed(t, nm)
	objects, nodes := e.filmMaintenance(t, nm.Name), e.filmNode(t, node)
	e.editLease(t, node, heldBy("another"))
	lease := e.lease(t, node)

	failed := e.until(t, nm, "Failed", inPhase(v1beta1.MaintenanceFailed))

	require.Equal(t, "maintenance failed: lease could not be extended after 4 attempts", failed.Status.LastError)
	require.Equal(t, 4, failed.Status.ErrorOnLeaseCount)
	// A node that was given back is not drained any more.
	requireConditions(t, failed, map[string]string{
		"Ready": "False Failed", "LeaseHeld": "False Lost", "Stalled": "True LeaseLost",
	})
	require.Equal(t, failed.Status.LastError, meta.FindStatusCondition(failed.Status.Conditions, "Stalled").Message)
	counted := map[int]time.Time{}
	for _, s := range objects.all(t) {
		if at := s.Status.LastUpdate; counted[s.Status.ErrorOnLeaseCount].IsZero() {
			counted[s.Status.ErrorOnLeaseCount] = at.Time
		}
	}
	for count := 2; count <= 4; count++ {
		require.GreaterOrEqual(t, counted[count].Sub(counted[count-1]), 5*time.Second, "failure %d", count)
		require.LessOrEqual(t, counted[count].Sub(counted[count-1]), 15*time.Second, "failure %d", count)
	}
	require.Equal(t, []v1beta1.MaintenancePhase{v1beta1.MaintenanceSucceeded, v1beta1.MaintenanceRunning, v1beta1.MaintenanceFailed}, phases(t, objects))
	e.requireGivenBack(t, before)
	require.Equal(t, lease.ResourceVersion, e.lease(t, node).ResourceVersion, "another's is left alone")
	restored := 0
	states := nodes.all(t)
	for i := range states[1:] {
		if states[i].Spec.Unschedulable && !states[i+1].Spec.Unschedulable {
			restored++
		}
	}
	require.Equal(t, 1, restored)
	return lostLease{node, nm}
}

// nodeBeyond makes a node that outlives its test.
func (e *env) nodeBeyond(t *testing.T) string {
	t.Helper()
	name := "beyond-" + suffix(t)
	require.NoError(t, e.Cluster.AddNode(t.Context(), name, cluster.NodeOptions{Labels: oldLabels()}))
	return name
}

func (l lostLease) testRestart(t *testing.T, e *env, restart func()) {
	require.NotNil(t, l.nm, "the test of the loss has failed")
	_, err := e.Kubectl(t.Context(), nil, "delete", "lease", "-n", leaseNamespace, "node-"+l.node)
	require.NoError(t, err, "free again, which is no invitation")
	e.cordon(t, l.node)
	begin := time.Now()

	restart()

	require.Equal(t, v1beta1.MaintenanceFailed, e.passed(t, l.nm).Status.Phase)
	e.end(t, l.nm)
	require.Zero(t, e.nodeWrites(t, l.node, begin))
	require.True(t, e.getNode(t, l.node).Spec.Unschedulable, "the admin's cordon")
	require.Nil(t, e.lease(t, l.node))
	require.Equal(t, map[string]int{"BeginMaintenance": 1, "SucceedMaintenance": 1, "LeaseLost": 1, "FailedMaintenance": 1, "RemovedMaintenance": 1},
		e.events(t, "NodeMaintenance", l.nm.Name))
	require.Equal(t, 1, e.events(t, "Node", l.node)["UncordonNode"])
}

// Leases cannot be written while their namespace goes; then it is made again. Nothing is given back.
func testTheNamespaceOfTheLeasesIsDeleted(t *testing.T, e *env) {
	node := e.node(t)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	before := e.requireOurs(t, node)
	film := e.filmMaintenance(t, nm.Name)

	_, err := e.Kubectl(t.Context(), nil, "delete", "namespace", leaseNamespace, "--wait=false")
	require.NoError(t, err)

	e.eventually(t, "a new lease", func() bool { l := e.lease(t, node); return l != nil && l.UID != before.UID })
	e.requireOurs(t, node)
	e.until(t, nm, "holding its lease", leaseIs(v1beta1.ReasonHeld))
	for _, s := range film.all(t) {
		require.Zero(t, s.Status.ErrorOnLeaseCount)
		require.Equal(t, v1beta1.MaintenanceSucceeded, s.Status.Phase)
	}
	require.True(t, held(e.getNode(t, node)))
}

// A slip in RBAC does not give every node back. Only a lease that has run out meanwhile is lost.
func testTheRightToLeasesIsTakenAway(t *testing.T, e *env) {
	var all []*v1beta1.NodeMaintenance
	for _, node := range e.nodes(t, 20) {
		all = append(all, e.maintain(t, node))
	}
	for _, nm := range all {
		e.succeed(t, nm)
	}
	lapsed := e.maintain(t, e.node(t))
	e.succeed(t, lapsed)
	node, ns := e.node(t), e.namespace(t)
	e.pod(t, ns, "lone", node, labelled(map[string]string{"app": "web"}))
	b := e.budget(t, ns, "web", 1, 1)
	draining := e.maintain(t, node)
	e.until(t, draining, "blocked", drainedReason(v1beta1.ReasonBlockedByBudget))
	begin := time.Now()
	giveBack := e.takeLeasesAway(t)
	e.editLease(t, node, func(l *coordinationv1.Lease) { l.Spec.RenewTime = ago(21 * time.Minute) })
	fresh := e.maintain(t, e.node(t))
	for _, nm := range all {
		e.editLease(t, nm.Spec.NodeName, func(l *coordinationv1.Lease) { l.Spec.RenewTime = ago(21 * time.Minute) })
	}
	e.editLease(t, lapsed.Spec.NodeName, func(l *coordinationv1.Lease) { l.Spec.RenewTime = ago(61 * time.Minute) })

	for _, nm := range all {
		now := e.until(t, nm, "refused", leaseIs(v1beta1.ReasonRefused))
		require.Contains(t, now.Status.LastError, "forbidden")
	}
	e.until(t, draining, "refused", leaseIs(v1beta1.ReasonRefused))
	e.relax(t, b)
	require.Contains(t, e.succeed(t, draining).Status.LastError, "forbidden", "the lease is ours for 39 minutes: the drain goes on")
	e.until(t, fresh, "refused", leaseIs(v1beta1.ReasonRefused))
	require.Zero(t, e.nodeWrites(t, fresh.Spec.NodeName, begin), "a lease that cannot even be read may be anybody's")
	failed := e.until(t, lapsed, "Failed", inPhase(v1beta1.MaintenanceFailed))
	require.Equal(t, 4, failed.Status.ErrorOnLeaseCount)
	require.False(t, held(e.getNode(t, lapsed.Spec.NodeName)))
	for _, nm := range all {
		now := e.read(t, nm)
		require.Equal(t, v1beta1.MaintenanceSucceeded, now.Status.Phase)
		require.Zero(t, now.Status.ErrorOnLeaseCount)
		require.True(t, held(e.getNode(t, nm.Spec.NodeName)))
		require.Zero(t, e.nodeWrites(t, nm.Spec.NodeName, begin))
	}

	giveBack()
	e.succeed(t, fresh)
	for _, nm := range append(all, draining) {
		now := e.until(t, nm, "holding its lease", leaseIs(v1beta1.ReasonHeld))
		require.Empty(t, now.Status.LastError)
		require.Equal(t, v1beta1.MaintenanceSucceeded, now.Status.Phase)
		requireRecent(t, e.requireOurs(t, nm.Spec.NodeName).Spec.RenewTime)
		require.Equal(t, 1, e.events(t, "NodeMaintenance", nm.Name)["SucceedMaintenance"])
	}
}

// takeLeasesAway takes the operator's right to leases, and returns how to give it back.
func (e *env) takeLeasesAway(t *testing.T) func() {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	require.NoError(t, e.Get(t.Context(), client.ObjectKey{Name: "node-maintenance-operator-manager-role"}, role))
	with := role.DeepCopy()
	for i, rule := range role.Rules {
		if rule.APIGroups[0] == "coordination.k8s.io" {
			role.Rules = append(role.Rules[:i], role.Rules[i+1:]...)
			break
		}
	}
	require.NoError(t, e.Update(t.Context(), role))
	can := func() bool {
		out, _ := e.Kubectl(t.Context(), nil, "auth", "can-i", "update", "leases", "-n", leaseNamespace, "--as="+deploy.User)
		return strings.TrimSpace(out) == "yes"
	}
	e.eventually(t, "the API server to refuse", func() bool { return !can() })
	return func() {
		with.ResourceVersion = role.ResourceVersion
		require.NoError(t, e.Update(t.Context(), with))
		e.eventually(t, "the API server to allow", can)
	}
}
