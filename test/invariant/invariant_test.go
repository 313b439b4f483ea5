// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

func node(edit ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node-uid", Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"a": "v"}}}
	for _, f := range edit {
		f(&n)
	}
	return n
}

func tainted(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule})
	}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func annotated(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

func pod(edit ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}
	for _, f := range edit {
		f(&p)
	}
	return p
}

func maintained(phase v1beta1.MaintenancePhase, progress int, edit ...func(*v1beta1.NodeMaintenance)) v1beta1.NodeMaintenance {
	nm := v1beta1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "nm", UID: "u1", OwnerReferences: []metav1.OwnerReference{{Kind: "Node", Name: "n", UID: "node-uid"}}},
		Spec:       v1beta1.NodeMaintenanceSpec{NodeName: "n"},
		Status:     v1beta1.NodeMaintenanceStatus{Phase: phase, DrainProgress: progress},
	}
	for _, f := range edit {
		f(&nm)
	}
	return nm
}

func going(nm *v1beta1.NodeMaintenance) { nm.DeletionTimestamp = ptr.To(metav1.Now()) }

func leaseOf(namespace, node, holder string, owner types.UID) coordinationv1.Lease {
	return coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "node-" + node, OwnerReferences: []metav1.OwnerReference{{Kind: "Node", UID: owner}}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}
}

func event(uid types.UID, reason string, count int32) corev1.Event {
	return corev1.Event{InvolvedObject: corev1.ObjectReference{UID: uid}, Reason: reason, Count: count}
}

// row is a snapshot and what is wrong with it; empty if nothing is.
type row struct {
	reason string
	s      Snapshot
	wrong  string
}

func check(t *testing.T, rule func(Snapshot) []Breach, rows []row) {
	t.Helper()
	for _, tc := range rows {
		t.Run(tc.reason, func(t *testing.T) {
			got := rule(tc.s)
			if tc.wrong == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Contains(t, got[0].String(), tc.wrong)
		})
	}
}

func TestProgress(t *testing.T) {
	const running, done = v1beta1.MaintenanceRunning, v1beta1.MaintenanceSucceeded
	of := func(nm v1beta1.NodeMaintenance, pods ...corev1.Pod) Snapshot {
		return Snapshot{Nodes: []corev1.Node{node()}, Pods: pods, Maintenances: []v1beta1.NodeMaintenance{nm}}
	}
	owned := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: ptr.To(true)}}
	}
	mirror := func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }
	elsewhere := func(p *corev1.Pod) { p.Spec.NodeName = "other" }
	unbound := func(p *corev1.Pod) { p.Spec.NodeName = "" }
	terminating := func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) }
	forNothing := func(nm *v1beta1.NodeMaintenance) { nm.OwnerReferences[0].UID = "the node before" }
	check(t, Progress, []row{
		{"on its way", of(maintained(running, 50), pod()), ""},
		{"done, with what may stay", of(maintained(done, 100), pod(owned), pod(mirror), pod(elsewhere), pod(unbound)), ""},
		{"a pod on a node that came later", of(maintained(done, 100, forNothing), pod()), ""},
		{"given back already", of(maintained(done, 100, going), pod()), ""},
		{"a node that is gone", Snapshot{Pods: []corev1.Pod{pod()}, Maintenances: []v1beta1.NodeMaintenance{maintained(done, 100)}}, ""},
		{"succeeded too early", of(maintained(done, 100), pod()), "ns/p is left"},
		{"a pod that is going is there", of(maintained(done, 100), pod(terminating)), "ns/p is left"},
		{"100 too early", of(maintained(running, 100), pod()), "ns/p is left"},
		{"too much", of(maintained(running, 101)), "progress 101"},
		{"too little", of(maintained(running, -1)), "progress -1"},
		{"a success of less than all", of(maintained(done, 99)), "at progress 99"},
	})
}

func TestGivenBack(t *testing.T) {
	before := map[string]Look{"n": LookOf(new(node(tainted("foreign", "x"))))}
	was := []func(*corev1.Node){tainted("foreign", "x")}
	bare := func(edit ...func(*corev1.Node)) Snapshot {
		return Snapshot{Nodes: []corev1.Node{node(append(was, edit...)...)}}
	}
	with := func(s Snapshot, l ...coordinationv1.Lease) Snapshot { s.Leases = l; return s }
	busy := bare(cordoned, tainted("medik8s.io/drain", ""))
	busy.Maintenances = []v1beta1.NodeMaintenance{maintained(v1beta1.MaintenanceRunning, 0)}
	check(t, func(s Snapshot) []Breach { return GivenBack(s, before) }, []row{
		{"as before", bare(), ""},
		{"as before, but for what the cluster does by itself", bare(tainted("node.kubernetes.io/unreachable", ""), annotated("node.alpha.kubernetes.io/ttl", "0")), ""},
		{"under maintenance", busy, ""},
		{"leases of others, and of a node that was", with(bare(), leaseOf("l", "n", "rival", "node-uid"), leaseOf("l", "n", ourHolder, "old"), leaseOf(nodeLeases, "node-n", ourHolder, "node-uid")), ""},
		{"still cordoned", bare(cordoned), "Unschedulable"},
		{"still tainted", bare(tainted("medik8s.io/drain", "")), "medik8s.io/drain"},
		{"a foreign taint lost", Snapshot{Nodes: []corev1.Node{node()}}, "foreign=x"},
		{"the record left", bare(annotated(maintenance.RecordAnnotation, "{}")), maintenance.RecordAnnotation},
		{"the label left", bare(func(n *corev1.Node) { n.Labels[maintenance.ExcludeLabel] = "true" }), maintenance.ExcludeLabel},
		{"a foreign label lost", bare(func(n *corev1.Node) { delete(n.Labels, "l") }), `"l"`},
		{"the lease left", with(bare(), leaseOf("l", "n", ourHolder, "node-uid")), "lease l/node-n is still ours"},
	})
	require.Empty(t, GivenBack(bare(cordoned), nil), "a node of which nothing is known")
}

func TestLookShares(t *testing.T) {
	l := LookOf(new(node(tainted("foreign", "x"))))
	c := l.Clone()
	c.Labels["l"], c.Annotations["a"], c.Taints[0] = "other", "other", "other"
	require.Equal(t, LookOf(new(node(tainted("foreign", "x")))), l)
}

func TestTaintFollowsCordon(t *testing.T) {
	of := func(edit ...func(*corev1.Node)) Snapshot { return Snapshot{Nodes: []corev1.Node{node(edit...)}} }
	check(t, TaintFollowsCordon, []row{
		{"neither", of(), ""},
		{"both", of(cordoned, tainted(corev1.TaintNodeUnschedulable, "")), ""},
		{"only the taint", of(tainted(corev1.TaintNodeUnschedulable, "")), "tainted true, unschedulable false"},
		{"only the cordon", of(cordoned), "tainted false, unschedulable true"},
	})
}

func TestHolders(t *testing.T) {
	recorded := annotated(maintenance.RecordAnnotation, `{"v":1,"holder":"node-maintenance"}`)
	of := func(n corev1.Node, l ...coordinationv1.Lease) Snapshot {
		return Snapshot{Nodes: []corev1.Node{n}, Leases: l}
	}
	ourLease := leaseOf("l", "n", ourHolder, "node-uid")
	check(t, OneHolder, []row{
		{"ours", of(node(recorded), ourLease), ""},
		{"the kubelet's beside ours", of(node(recorded), ourLease, leaseOf(nodeLeases, "node-n", "n", "node-uid")), ""},
		{"the record before its lease came back", of(node(recorded)), ""},
		{"another's, and no record", of(node(), leaseOf("l", "n", "rival", "node-uid")), ""},
		{"two", of(node(), ourLease, leaseOf("other", "n", "rival", "node-uid")), `of "node-maintenance" and of "rival"`},
		{"the record of one, the lease of the other", of(node(recorded), leaseOf("l", "n", "rival", "node-uid")), `its lease is of "rival"`},
		{"a record that names nobody", of(node(annotated(maintenance.RecordAnnotation, "{{{")), ourLease), "its record is {{{"},
	})
	held := of(node(), ourLease)
	held.Maintenances = []v1beta1.NodeMaintenance{maintained(v1beta1.MaintenanceRunning, 0)}
	check(t, NoLeaseLeft, []row{
		{"under maintenance", held, ""},
		{"another's", of(node(), leaseOf("l", "n", "rival", "node-uid")), ""},
		{"left behind", of(node(), ourLease), "l/node-n"},
		{"left behind by a node that is gone", Snapshot{Leases: []coordinationv1.Lease{ourLease}}, "l/node-n"},
	})
}

func TestTold(t *testing.T) {
	there := []v1beta1.NodeMaintenance{maintained(v1beta1.MaintenanceSucceeded, 100)}
	uncordoned := func(uid string, count int32) corev1.Event {
		e := event("node-uid", uncordon, count)
		e.Name = "uncordonnode-" + uid
		return e
	}
	check(t, ToldOnce, []row{
		{"each once", Snapshot{Events: []corev1.Event{event("u1", begun, 1), event("u2", begun, 1), uncordoned("u1-a", 1), uncordoned("u2-a", 1)}}, ""},
		{"one that may come again", Snapshot{Events: []corev1.Event{event("u1", "PodBlocked", 5)}}, ""},
		{"counted up", Snapshot{Events: []corev1.Event{event("u1", succeeded, 2)}}, "SucceedMaintenance was told 2 times"},
		{"in two events", Snapshot{Events: []corev1.Event{event("u1", removed, 1), event("u1", removed, 1)}}, "RemovedMaintenance was told 2 times"},
		{"of a node, for one object", Snapshot{Events: []corev1.Event{uncordoned("u1-a", 1), uncordoned("u1-a", 1)}}, "UncordonNode was told 2 times"},
	})
	check(t, ToldAll, []row{
		{"there", Snapshot{Maintenances: there, Events: []corev1.Event{event("u1", begun, 1), event("u1", succeeded, 1)}}, ""},
		{"one that is on its way", Snapshot{Maintenances: []v1beta1.NodeMaintenance{maintained(v1beta1.MaintenanceRunning, 0)}}, ""},
		{"silent about its success", Snapshot{Maintenances: there, Events: []corev1.Event{event("u1", begun, 1)}}, "without SucceedMaintenance"},
		{"silent about its beginning", Snapshot{Maintenances: there, Events: []corev1.Event{event("u1", succeeded, 1)}}, "without BeginMaintenance"},
	})
	check(t, ToldEnd, []row{
		{"one that is there, and one that is gone", Snapshot{Maintenances: there, Events: []corev1.Event{event("u1", begun, 1), event("u2", begun, 1), event("u2", removed, 1)}}, ""},
		{"silent about its end", Snapshot{Events: []corev1.Event{event("u1", begun, 1)}}, "never told RemovedMaintenance"},
	})
}

func TestDone(t *testing.T) {
	of := func(nm v1beta1.NodeMaintenance) Snapshot {
		return Snapshot{Maintenances: []v1beta1.NodeMaintenance{nm}}
	}
	troubled := func(nm *v1beta1.NodeMaintenance) { nm.Status.LastError = "budget" }
	check(t, Done, []row{
		{"done", of(maintained(v1beta1.MaintenanceSucceeded, 100)), ""},
		{"on its way", of(maintained(v1beta1.MaintenanceRunning, 66)), "progress 66"},
		{"given up", of(maintained(v1beta1.MaintenanceFailed, 0)), `phase "Failed"`},
		{"with a complaint", of(maintained(v1beta1.MaintenanceSucceeded, 100, troubled)), `last error "budget"`},
		{"stuck on its way out", of(maintained(v1beta1.MaintenanceSucceeded, 100, going)), "being deleted true"},
	})
}

// What joins the rules leaves none out.
func TestAlwaysAndAtRest(t *testing.T) {
	s := Snapshot{
		Nodes: []corev1.Node{
			node(cordoned), node(annotated(maintenance.RecordAnnotation, "{}"), func(n *corev1.Node) { n.Name, n.UID = "m", "m-uid" }),
		},
		Pods: []corev1.Pod{pod()},
		Maintenances: []v1beta1.NodeMaintenance{
			maintained(v1beta1.MaintenanceRunning, 100, func(nm *v1beta1.NodeMaintenance) { nm.UID = "u2" }),
			maintained(v1beta1.MaintenanceSucceeded, 100, func(nm *v1beta1.NodeMaintenance) { nm.UID, nm.Name, nm.Spec.NodeName = "u3", "x", "x" }),
		},
		Leases: []coordinationv1.Lease{leaseOf("l", "m", ourHolder, "old")},
		Events: []corev1.Event{event("u1", begun, 2), event("u3", begun, 1)},
	}
	names := func(all []Breach) (out []string) {
		for _, b := range all {
			out = append(out, b.Rule)
		}
		return out
	}
	before := map[string]Look{"m": LookOf(new(node()))}
	always := []string{"progress", "given back", "one holder", "told once"}
	require.Equal(t, always, names(Always(s, before)))
	require.Equal(t, append(always, "done", "told all", "told its end", "no lease left", "unschedulable taint"), names(AtRest(s, before)))
}
