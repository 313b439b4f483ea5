// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
	"github.com/nodemaint/nodemaint/taint"
)

// life is a process that maintains n1, stores its state after each step, and may die once.
type life struct {
	*stage
	crash  *mt.Rule
	stored maintenance.State
}

// lived says whether the process is still the one it was; if not, another takes its place, which knows what
// was stored.
func (l *life) lived() bool {
	if l.crash == nil || l.crash.Hits() == 0 {
		return true
	}
	l.crash.Remove()
	l.crash = nil
	l.restart()
	return false
}

func (l *life) startUntil(phase maintenance.Phase) {
	for l.stored.Phase != phase {
		next, err := l.Start(l.t.Context(), "n1", l.stored)
		if !l.lived() {
			continue
		}
		require.NoError(l.t, err)
		l.stored = next
		advance(max(next.RetryAfter, time.Millisecond))
	}
}

func (l *life) stopAll() {
	for {
		_, err := l.Stop(l.t.Context(), "n1")
		if l.lived() {
			require.NoError(l.t, err)
			return
		}
	}
}

// outcome is what is seen from outside, at the height of a maintenance and after it.
type outcome struct {
	held, after string
	pods        int
	lease       string
	steps       []maintenance.Step // the first of each
}

func (l *life) holder() string {
	if le := l.Lease(leaseNS, "node-n1"); le != nil {
		return *le.Spec.HolderIdentity
	}
	return ""
}

func (l *life) firstSteps() []maintenance.Step {
	var out []maintenance.Step
	seen := map[maintenance.Step]bool{}
	for _, s := range l.steps {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// TestCrashes dies before and after each write of a whole maintenance: the end is the same.
func TestCrashes(t *testing.T) {
	dirty := func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		n.Spec.Taints = []corev1.Taint{{Key: taint.DrainKey, Value: "x", Effect: corev1.TaintEffectNoSchedule}}
		n.Labels[maintenance.ExcludeLabel] = "no"
	}
	end := func(l *life) { l.stopAll() }
	lose := func(l *life) { l.steal(); l.startUntil(maintenance.Failed); l.stopAll() }
	letGo := func(l *life) { // an admin takes off what was his; then all of it is ours
		l.EditNode("n1", func(n *corev1.Node) {
			n.Spec = corev1.NodeSpec{}
			n.Labels[maintenance.ExcludeLabel] = "mine"
		})
		l.stored.Phase = maintenance.Running
		l.startUntil(maintenance.Succeeded)
		l.stopAll()
	}
	for _, tt := range []struct {
		reason string
		node   func(*corev1.Node)
		then   func(*life)
	}{
		{"a clean node, stopped", func(*corev1.Node) {}, end},
		{"a node that was not clean, stopped", dirty, end},
		{"a clean node, its lease lost", func(*corev1.Node) {}, lose},
		{"a node that was not clean, its lease lost", dirty, lose},
		{"marks put back, then stopped", dirty, letGo},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			play := func(crash func(*mt.Cluster) *mt.Rule) (out outcome, hit bool) {
				onStage(t, func(t *testing.T, s *stage) {
					s.EditNode("n1", tt.node)
					l := &life{stage: s}
					var rule *mt.Rule
					if crash != nil {
						rule = crash(s.Cluster)
						l.crash = rule
					}
					l.startUntil(maintenance.Succeeded)
					held(t, s.Node("n1"))
					out.held = looks(s.Node("n1"))
					tt.then(l)
					out.after, out.pods, out.lease, out.steps = looks(s.Node("n1")), len(s.PodsOn("n1")), l.holder(), l.firstSteps()
					hit = rule != nil && rule.Hits() > 0
				}, webPod(), mt.Pod("shop", "lone", "n1"))
				return out, hit
			}
			want, _ := play(nil)
			writes := 0
			for n := 1; ; n++ {
				before, hit := play(func(c *mt.Cluster) *mt.Rule { return c.CrashBefore(n) })
				require.Equal(t, want, before, fmt.Sprintf("died before write %d", n))
				if !hit {
					break
				}
				after, _ := play(func(c *mt.Cluster) *mt.Rule { return c.CrashAfter(n) })
				require.Equal(t, want, after, fmt.Sprintf("died after write %d", n))
				writes = n
			}
			require.GreaterOrEqual(t, writes, 8)
		})
	}
}
