// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/test/cluster"
)

const (
	excludeLabel     = "remediation.medik8s.io/exclude-from-remediation"
	recordAnnotation = "nodemaintenance.medik8s.io/applied"
	drainKey         = "medik8s.io/drain"
)

func hasDrainTaint(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(tt corev1.Taint) bool { return tt.Key == drainKey })
}

func held(n *corev1.Node) bool {
	return n.Spec.Unschedulable && hasDrainTaint(n) && n.Labels[excludeLabel] == "true"
}

// requireGivenBack waits until the node is, but for its status, what it was before: kube-controller-manager
// takes its taint off, or puts it back, a moment later.
func (e *env) requireGivenBack(t *testing.T, before *corev1.Node) {
	t.Helper()
	now := e.getNode(t, before.Name)
	waitFor(func() bool {
		now = e.getNode(t, before.Name)
		return len(now.Spec.Taints) == len(before.Spec.Taints)
	}, patience)
	requireSame(t, before, now)
}

// requireSame checks that a node is as it was, but for its status and the times of its taints, which
// kube-controller-manager sets.
func requireSame(t *testing.T, before, now *corev1.Node) {
	t.Helper()
	require.ElementsMatch(t, taints(before), taints(now))
	require.Equal(t, before.Spec.Unschedulable, now.Spec.Unschedulable)
	require.Equal(t, before.Labels, now.Labels)
	require.Equal(t, before.Annotations, now.Annotations)
}

// cordon makes the node unschedulable as an admin would, and waits for the taint that comes with it.
func (e *env) cordon(t *testing.T, node string) {
	t.Helper()
	_, err := e.Kubectl(t.Context(), nil, "cordon", node)
	require.NoError(t, err)
	e.eventually(t, "kube-controller-manager to taint the node", func() bool {
		return slices.Contains(taints(e.getNode(t, node)), "node.kubernetes.io/unschedulable:NoSchedule")
	})
}

func TestTheNodeIsTakenInOrder(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.pod(t, ns, "one", node)
	e.pod(t, ns, "two", node)
	film := e.filmNode(t, node)
	begin := time.Now()

	nm := e.maintain(t, node)
	e.succeed(t, nm)

	recorded, before := film.first(t, "recorded", func(n *corev1.Node) bool { return n.Annotations[recordAnnotation] != "" })
	require.Equal(t, "true", recorded.Labels[excludeLabel], "record and label are one write")
	for _, n := range append(before, recorded) {
		require.False(t, hasDrainTaint(n) || n.Spec.Unschedulable, "nothing is done before the record is written")
	}
	tainted, before := film.first(t, "tainted", hasDrainTaint)
	require.Subset(t, taints(tainted), []string{"medik8s.io/drain:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"})
	require.True(t, tainted.Spec.Unschedulable, "taints and cordon are one write")
	for _, n := range before {
		require.NotContains(t, taints(n), "node.kubernetes.io/unschedulable:NoSchedule")
	}
	film.first(t, "held", held)

	wrote := func() []string {
		return e.requests(t, begin, func(ev cluster.AuditEvent) bool {
			return about(nm)(ev) && ev.Subresource != "status" || ev.Namespace == ns
		})
	}
	e.eventually(t, "the audit log", func() bool { return len(wrote()) >= 8 })
	got := wrote()
	uid := string(nm.UID)
	require.Equal(t, []string{
		"patch nodemaintenances " + nm.Name, "create leases node-" + node, "create events beginmaintenance-" + uid,
		"patch nodes " + node, "patch nodes " + node,
	}, got[:5])
	require.ElementsMatch(t, []string{"create pods/eviction one", "create pods/eviction two"}, got[5:7])
	require.Equal(t, []string{"create events succeedmaintenance-" + uid}, got[7:])
}

func TestTheNodeIsGivenBackInOrder(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	film := e.filmNode(t, node)
	film.first(t, "held", held)
	begin := time.Now()

	e.end(t, nm)

	unlabelled, before := film.first(t, "unlabelled", func(n *corev1.Node) bool { return n.Labels[excludeLabel] == "" })
	require.True(t, unlabelled.Spec.Unschedulable && hasDrainTaint(unlabelled) && unlabelled.Annotations[recordAnnotation] != "", "the label goes first and alone")
	for _, n := range before {
		require.True(t, held(n))
	}
	schedulable, before := film.first(t, "schedulable", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
	require.Empty(t, taints(schedulable), "taints, cordon and record go in one write")
	require.Empty(t, schedulable.Annotations[recordAnnotation])
	for _, n := range before {
		require.True(t, hasDrainTaint(n) && n.Annotations[recordAnnotation] != "")
	}

	wrote := func() []string { return e.requests(t, begin, about(nm)) }
	e.eventually(t, "the audit log", func() bool { return len(wrote()) >= 6 })
	uid := string(nm.UID)
	require.Equal(t, []string{
		"patch nodes " + node, "create events uncordonnode-" + uid, "patch nodes " + node, "delete leases node-" + node,
		"create events removedmaintenance-" + uid, "patch nodemaintenances " + nm.Name,
	}, wrote())
}

func TestACordonOfAnAdminStays(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	e.cordon(t, node)
	before := e.getNode(t, node)

	nm := e.maintain(t, node)
	e.succeed(t, nm)
	require.True(t, held(e.getNode(t, node)))
	e.end(t, nm)

	e.requireGivenBack(t, before)
	require.Zero(t, e.events(t, "Node", node)["UncordonNode"])
}

func TestMarksThatWereThereBeforeStayAsTheyWere(t *testing.T) {
	t.Parallel()
	e := shared
	drain := func(value string) corev1.Taint {
		return corev1.Taint{Key: drainKey, Value: value, Effect: corev1.TaintEffectNoSchedule}
	}
	for _, row := range []struct {
		reason string
		edit   func(*corev1.Node)
	}{
		{"a drain taint with a value", func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, drain("x")) }},
		{"a drain taint without a value", func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, drain("")) }},
		{"a drain taint of another effect", func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: drainKey, Effect: corev1.TaintEffectPreferNoSchedule})
		}},
		{"the label as we set it", func(n *corev1.Node) { n.Labels[excludeLabel] = "true" }},
		{"the label with another value", func(n *corev1.Node) { n.Labels[excludeLabel] = "no" }},
		{"the label with an empty value", func(n *corev1.Node) { n.Labels[excludeLabel] = "" }},
		{"everything at once", func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, drain("x"))
			n.Labels[excludeLabel] = "true"
			n.Spec.Unschedulable = true
		}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			node := e.node(t)
			e.editNode(t, node, row.edit)
			if e.getNode(t, node).Spec.Unschedulable {
				e.cordon(t, node)
			}
			before := e.getNode(t, node)

			nm := e.maintain(t, node)
			e.succeed(t, nm)
			now := e.getNode(t, node)
			require.True(t, held(now))
			require.Subset(t, taints(now), taints(before))
			e.end(t, nm)

			e.requireGivenBack(t, before)
		})
	}
}

func TestMarksThatAreNoLongerOursStay(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	before := e.getNode(t, node)
	nm := e.maintain(t, node)
	e.succeed(t, nm)

	e.editNode(t, node, func(n *corev1.Node) {
		i := slices.IndexFunc(n.Spec.Taints, func(tt corev1.Taint) bool { return tt.Key == drainKey })
		n.Spec.Taints[i].Value = "mine"
	})
	e.passed(t, nm)
	e.end(t, nm)

	now := e.getNode(t, node)
	require.Equal(t, []string{"medik8s.io/drain=mine:NoSchedule"}, taints(now), "our taint comes off only while it has no value")
	require.False(t, now.Spec.Unschedulable)
	require.Equal(t, before.Labels, now.Labels)
	require.Equal(t, before.Annotations, now.Annotations)
}

// A writer that adds and removes taints all the time, as node controllers do, loses none of them, and its
// times and values stay.
func TestForeignTaintsSurvive(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	e.editNode(t, node, func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "example.com/mine", Value: "v", Effect: corev1.TaintEffectPreferNoSchedule})
	})
	before := e.getNode(t, node)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lost := make(chan error, 1)
	go func() { lost <- e.shuffleTaints(ctx, node) }()

	for range 3 {
		nm := e.maintain(t, node)
		e.succeed(t, nm)
		e.end(t, nm)
	}

	cancel()
	require.NoError(t, <-lost)
	e.editNode(t, node, func(n *corev1.Node) {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(tt corev1.Taint) bool { return strings.HasPrefix(tt.Key, "shuffled.example.com/") })
	})
	e.requireGivenBack(t, before)
}

// shuffleTaints adds taints one by one, takes the oldest of three off, and says when one is not as it had
// put it.
func (e *env) shuffleTaints(ctx context.Context, node string) error {
	var mine []corev1.Taint
	for i := 0; ctx.Err() == nil; {
		n := &corev1.Node{}
		if err := e.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
			return client.IgnoreNotFound(ignoreEnd(ctx, err))
		}
		var others, there []corev1.Taint
		for _, tt := range n.Spec.Taints {
			if strings.HasPrefix(tt.Key, "shuffled.example.com/") {
				there = append(there, tt)
			} else {
				others = append(others, tt)
			}
		}
		if !slices.EqualFunc(there, mine, func(a, b corev1.Taint) bool { return a.ToString() == b.ToString() }) {
			return fmt.Errorf("of the taints %v are left %v", mine, there)
		}
		next := append(slices.Clone(mine), corev1.Taint{Key: fmt.Sprintf("shuffled.example.com/%d", i), Value: "v", Effect: corev1.TaintEffectPreferNoSchedule})
		next = next[max(0, len(next)-3):]
		n.Spec.Taints = append(others, next...)
		switch err := e.Update(ctx, n); {
		case err == nil:
			mine, i = next, i+1
		case !apierrors.IsConflict(err):
			return ignoreEnd(ctx, err)
		}
	}
	return nil
}

// ignoreEnd passes over an error that comes from the end of ctx.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the caller ended it
	}
	return err
}
