// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
	"github.com/nodemaint/nodemaint/taint"
)

// life is a process that maintains n1, stores its state after each step, and may die or meet a fault once.
type life struct {
	*stage
	crash  *mt.Rule // of the process
	fault  *mt.Rule // of one request
	errors int
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
		if err != nil {
			l.bear(err)
			continue
		}
		l.stored = next
		advance(max(next.RetryAfter, time.Millisecond))
	}
}

func (l *life) stopAll() {
	for {
		_, err := l.Stop(l.t.Context(), "n1")
		switch {
		case !l.lived():
		case err != nil:
			l.bear(err)
		default:
			return
		}
	}
}

// bear takes the one error that is to be expected of a fault; it is tried again after a while.
func (l *life) bear(err error) {
	require.NotNil(l.t, l.fault, "%v", err)
	require.Positive(l.t, l.fault.Hits(), "%v", err)
	require.LessOrEqual(l.t, l.errors, 1)
	l.errors++
	advance(time.Second)
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

// mishaps are what may happen at one write.
var mishaps = map[string]func(l *life, n int) *mt.Rule{
	"died before":   func(l *life, n int) *mt.Rule { l.crash = l.CrashBefore(n); return l.crash },
	"died after":    func(l *life, n int) *mt.Rule { l.crash = l.CrashAfter(n); return l.crash },
	"an error at":   func(l *life, n int) *mt.Rule { l.fault = l.FailWrite(n, nil); return l.fault },
	"lost":          func(l *life, n int) *mt.Rule { l.fault = l.LoseWrite(n, nil); return l.fault },
	"a conflict at": func(l *life, n int) *mt.Rule { l.fault = l.FailWrite(n, errConflict); return l.fault },
	"a conflict, though it took effect, at": func(l *life, n int) *mt.Rule {
		l.fault = l.LoseWrite(n, errConflict)
		return l.fault
	},
}

var errConflict = apierrors.NewConflict(schema.GroupResource{}, "it", errors.New("somebody was faster"))

// TestMishaps has a mishap at each write of a whole maintenance: the end is the same.
func TestMishaps(t *testing.T) {
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
			play := func(mishap func(*life) *mt.Rule) (out outcome, hit bool) {
				onStage(t, func(t *testing.T, s *stage) {
					s.EditNode("n1", tt.node)
					l := &life{stage: s}
					var rule *mt.Rule
					if mishap != nil {
						rule = mishap(l)
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
			for name, mishap := range mishaps {
				n := 1
				for ; ; n++ {
					got, hit := play(func(l *life) *mt.Rule { return mishap(l, n) })
					require.Equal(t, want, got, "%s write %d", name, n)
					if !hit {
						break
					}
				}
				require.Greater(t, n, 8)
			}
		})
	}
}
