// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// recordOf returns the text of a record of somebody's.
func recordOf(holder string, unschedulable bool, taintList, label string) string {
	return fmt.Sprintf(`{"v":1,"holder":%q,"unschedulable":%t,"taints":%s,"label":%s,"total":3,"eviction":2}`, holder, unschedulable, taintList, label)
}

func withRecord(text string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[recordAnnotation] = text }
}

func marked(n *corev1.Node) {
	n.Labels[excludeLabel] = "true"
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: drainKey, Effect: corev1.TaintEffectNoSchedule})
	n.Spec.Unschedulable = true
}

func TestTheRecordSaysWhatWasThere(t *testing.T) {
	t.Parallel()
	e := shared
	for _, row := range []struct {
		reason string
		edit   func(*corev1.Node)
		record string
	}{
		{"a plain node", func(*corev1.Node) {}, `{"v":1,"holder":"node-maintenance","unschedulable":false,"taints":[],"label":null,"total":2,"eviction":1}`},
		{"a node with everything", func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: drainKey, Value: "x", Effect: corev1.TaintEffectNoSchedule})
			n.Spec.Unschedulable = true
			n.Labels[excludeLabel] = "no"
		}, `{"v":1,"holder":"node-maintenance","unschedulable":true,"taints":["medik8s.io/drain=x:NoSchedule","node.kubernetes.io/unschedulable:NoSchedule"],"label":"no","total":2,"eviction":1}`},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			node, ns := e.node(t), e.namespace(t)
			e.pod(t, ns, "lone", node)
			e.pod(t, ns, "mirror", node, annotated(corev1.MirrorPodAnnotationKey, "x"))
			e.editNode(t, node, row.edit)
			if e.getNode(t, node).Spec.Unschedulable {
				e.cordon(t, node)
			}

			nm := e.succeed(t, e.maintain(t, node))

			require.Equal(t, row.record, e.getNode(t, node).Annotations[recordAnnotation])
			require.Equal(t, 2, nm.Status.TotalPods)
			require.Equal(t, 1, nm.Status.EvictionPods)
		})
	}
}

func TestTheRecordThatIsFound(t *testing.T) {
	t.Parallel()
	e := shared
	drainX := corev1.Taint{Key: drainKey, Value: "x", Effect: corev1.TaintEffectNoSchedule}
	for _, row := range []struct {
		reason      string
		edit        func(*corev1.Node)
		record      string // while the node is held
		cordon      bool   // what it is given back with
		label       string
		taints      []string
		total, evic int
	}{
		{
			"another's is taken over: only its holder changes",
			func(n *corev1.Node) { marked(n); withRecord(recordOf("another", false, "[]", `"no"`))(n) },
			recordOf("node-maintenance", false, "[]", `"no"`), false, "no", nil, 3, 2,
		},
		{
			"another's on a node without marks is taken over too",
			withRecord(recordOf("another", false, "[]", "null")),
			recordOf("node-maintenance", false, "[]", "null"), false, "", nil, 3, 2,
		},
		{
			"ours of an earlier start goes on: what it calls foreign stays",
			func(n *corev1.Node) { marked(n); withRecord(recordOf("node-maintenance", true, "[]", "null"))(n) },
			recordOf("node-maintenance", true, "[]", "null"), true, "", []string{"node.kubernetes.io/unschedulable:NoSchedule"}, 3, 2,
		},
		{
			"ours on a node without any mark is stale",
			withRecord(recordOf("node-maintenance", true, `["medik8s.io/drain=x:NoSchedule"]`, `"no"`)),
			`{"v":1,"holder":"node-maintenance","unschedulable":false,"taints":[],"label":null,"total":0,"eviction":0}`, false, "", nil, 0, 0,
		},
		{
			"one that is none, on a node without marks, is written anew",
			withRecord("{{{"),
			`{"v":1,"holder":"node-maintenance","unschedulable":false,"taints":[],"label":null,"total":0,"eviction":0}`, false, "", nil, 0, 0,
		},
		{
			"none, and marks of somebody's on a node whose lease was nobody's: they are foreign",
			func(n *corev1.Node) { marked(n); n.Spec.Taints[0] = drainX },
			`{"v":1,"holder":"node-maintenance","unschedulable":true,"taints":["medik8s.io/drain=x:NoSchedule","node.kubernetes.io/unschedulable:NoSchedule"],"label":"true","total":0,"eviction":0}`,
			true, "true", []string{"medik8s.io/drain=x:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"}, 0, 0,
		},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			node := e.node(t)
			e.editNode(t, node, row.edit)
			if e.getNode(t, node).Spec.Unschedulable {
				e.cordon(t, node)
			}

			nm := e.succeed(t, e.maintain(t, node))
			require.Equal(t, row.record, e.getNode(t, node).Annotations[recordAnnotation])
			require.True(t, held(e.getNode(t, node)))
			require.Equal(t, row.total, nm.Status.TotalPods)
			require.Equal(t, row.evic, nm.Status.EvictionPods)
			e.end(t, nm)

			e.eventually(t, "kube-controller-manager to follow the cordon", func() bool { return len(taints(e.getNode(t, node))) == len(row.taints) })
			now := e.getNode(t, node)
			require.Equal(t, row.cordon, now.Spec.Unschedulable)
			require.Equal(t, row.label, now.Labels[excludeLabel])
			require.ElementsMatch(t, row.taints, taints(now))
			require.NotContains(t, now.Annotations, recordAnnotation)
		})
	}
}

func TestARecordThatIsRemovedIsWrittenAgain(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	before := e.getNode(t, node)
	e.pod(t, ns, "lone", node)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	record := e.getNode(t, node).Annotations[recordAnnotation]

	e.editNode(t, node, func(n *corev1.Node) { delete(n.Annotations, recordAnnotation) })

	e.within(t, time.Second, "the record", func() bool { return e.getNode(t, node).Annotations[recordAnnotation] != "" })
	require.Equal(t, record, e.getNode(t, node).Annotations[recordAnnotation])
	e.end(t, nm)
	e.requireGivenBack(t, before)
}

func TestAnUnreadableRecord(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	e.editNode(t, node, withRecord("{{{"))
	now := e.passed(t, nm)
	require.Contains(t, now.Status.LastError, recordAnnotation)
	require.Equal(t, "{{{", e.getNode(t, node).Annotations[recordAnnotation], "nothing better is known")

	e.end(t, nm)

	left := e.getNode(t, node)
	require.Equal(t, []string{"node.kubernetes.io/unschedulable:NoSchedule"}, taints(left))
	require.True(t, left.Spec.Unschedulable)
	require.Equal(t, "true", left.Labels[excludeLabel])
	require.NotContains(t, left.Annotations, recordAnnotation)
	require.Nil(t, e.lease(t, node))
	words := e.messages(t, "Node", node, "RestoreIncomplete")
	require.Len(t, words, 1)
	require.Contains(t, words[0], "kubectl uncordon "+node)
	require.Contains(t, words[0], "kubectl label node "+node+" "+excludeLabel+"-")
	require.Zero(t, e.events(t, "Node", node)["UncordonNode"])

	for _, args := range [][]string{{"uncordon", node}, {"label", "node", node, excludeLabel + "-"}} {
		_, err := e.Kubectl(t.Context(), nil, args...)
		require.NoError(t, err, "the commands do finish it")
	}
}

// Whoever took lease and record over has the node: our Stop has nothing to undo.
func TestARecordThatNamesAnotherIsNotOursToUndo(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	e.editLease(t, node, heldBy("another"))
	e.editNode(t, node, withRecord(recordOf("another", false, "[]", "null")))
	taken := e.getNode(t, node)

	e.end(t, nm)

	now := e.getNode(t, node)
	requireSame(t, taken, now)
	require.Equal(t, "another", *e.lease(t, node).Spec.HolderIdentity)
}
