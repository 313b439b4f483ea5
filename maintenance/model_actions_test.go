// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
	"github.com/nodemaint/nodemaint/taint"
)

// actions are all that may happen.
func (m *model) actions() map[string]func(*rapid.T) {
	either := func(t *rapid.T) *party { return rapid.SampledFrom([]*party{m.us, m.us, m.us, m.rival}).Draw(t, "who") }
	dies := func(t *rapid.T) (string, int) {
		return rapid.SampledFrom([]string{"", "", "before", "after"}).Draw(t, "dies"), rapid.IntRange(1, 5).Draw(t, "at write")
	}
	return map[string]func(*rapid.T){
		"":     m.check,
		"pass": func(t *rapid.T) { p := either(t); p.pass(dies(t)) },
		"pass again": func(t *rapid.T) {
			p := either(t)
			if !p.began {
				t.Skip("it has not begun")
			}
			for range 3 {
				<-time.After(max(p.stored.RetryAfter, time.Millisecond))
				p.pass("", 0)
			}
		},
		"stop":    func(t *rapid.T) { p := either(t); p.stop(dies(t)) },
		"restart": func(t *rapid.T) { either(t).boot() },
		"watch":   func(t *rapid.T) { either(t).watch() },
		"time passes": func(t *rapid.T) {
			<-time.After(rapid.SampledFrom([]time.Duration{time.Second, 6 * time.Second, time.Minute, 25 * time.Minute, 2 * time.Hour}).Draw(t, "time"))
		},
		"a clock jumps": func(t *rapid.T) { // between two processes: within one, times are told apart by another clock
			jump := rapid.SampledFrom([]time.Duration{-time.Hour, -3 * time.Second, 3 * time.Second, time.Hour}).Draw(t, "jump")
			p := either(t)
			p.clock.off.Add(int64(jump))
			p.counted = time.Time{}
			p.boot()
		},
		"a pod comes": func(t *rapid.T) {
			m.pods++
			o := []mt.PodOption{mt.Labels(map[string]string{"app": rapid.SampledFrom([]string{"web", "db"}).Draw(t, "app")})}
			if rapid.Bool().Draw(t, "owned") {
				o = append(o, mt.OfReplicaSet("web"))
			}
			m.Add(mt.Pod("shop", fmt.Sprintf("p-%d", m.pods), "n1", o...))
		},
		"a pod goes":        func(t *rapid.T) { m.DeletePod("shop", m.drawPod(t).Name) },
		"a pod is finished": func(t *rapid.T) { m.FinishPod("shop", m.drawPod(t).Name) },
		"a pod is replaced": func(t *rapid.T) {
			p := m.drawPod(t)
			m.RemovePod("shop", p.Name)
			m.Add(mt.Pod("shop", p.Name, rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"), mt.Labels(p.Labels)))
		},
		"a budget": func(t *rapid.T) {
			app := rapid.SampledFrom([]string{"web", "db"}).Draw(t, "app")
			if m.Budget("shop", app) != nil {
				m.DeleteBudget("shop", app)
				return
			}
			m.AddBudget("shop", app, map[string]string{"app": app}, rapid.IntRange(0, 2).Draw(t, "at least"))
		},
		"others mark the node": func(t *rapid.T) {
			m.things++
			k, v := fmt.Sprintf("example.com/%d", m.things), "yes"
			m.foreign[k] = v
			m.EditNode("n1", func(n *corev1.Node) {
				n.Labels[k] = v
				if n.Annotations == nil {
					n.Annotations = map[string]string{}
				}
				n.Annotations[k] = v
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: k, Value: v, Effect: corev1.TaintEffectPreferNoSchedule})
			})
		},
		"an administrator marks the node": func(t *rapid.T) {
			if m.record() != "" {
				t.Skip("whose marks those are would be anybody's guess")
			}
			switch rapid.IntRange(0, 2).Draw(t, "mark") {
			case 0:
				m.theirs.unschedulable = true
			case 1:
				// Never empty: with a lease that is ours and without a record that is what an operator without
				// records left, and a death between lease and record looks the same.
				m.theirs.drain = ptr.To(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "value"))
			default:
				m.theirs.label = ptr.To(rapid.SampledFrom([]string{"true", "no"}).Draw(t, "value"))
			}
			m.EditNode("n1", m.theirs.on)
		},
		"an administrator takes a mark off": func(t *rapid.T) {
			which := rapid.IntRange(0, 2).Draw(t, "mark")
			m.EditNode("n1", func(n *corev1.Node) {
				switch which {
				case 0:
					m.theirs.unschedulable, n.Spec.Unschedulable = false, false
				case 1:
					m.theirs.drain = nil
					n.Spec.Taints, _ = taint.Without(n.Spec.Taints, corev1.Taint{Key: taint.DrainKey, Effect: corev1.TaintEffectNoSchedule})
					n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.DrainKey })
				default:
					m.theirs.label = nil
					delete(n.Labels, maintenance.ExcludeLabel)
				}
			})
		},
		"the lease": func(t *rapid.T) {
			l := m.Lease(leaseNS, "node-n1")
			if l == nil {
				m.Add(leaseOf("them", time.Now()))
				return
			}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				m.DeleteLease(leaseNS, "node-n1")
			case 1:
				m.EditLease(leaseNS, "node-n1", func(l *coordinationv1.Lease) { l.Spec.RenewTime.Time = time.Now().Add(-2 * time.Hour) })
			default:
				m.EditLease(leaseNS, "node-n1", func(l *coordinationv1.Lease) {
					l.Spec.HolderIdentity, l.Spec.RenewTime.Time = ptr.To("them"), time.Now()
				})
			}
		},
	}
}

// on puts the marks on n.
func (k marks) on(n *corev1.Node) {
	n.Spec.Unschedulable = k.unschedulable
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.DrainKey })
	if k.drain != nil {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taint.DrainKey, Value: *k.drain, Effect: corev1.TaintEffectNoSchedule})
	}
	if k.label != nil {
		n.Labels[maintenance.ExcludeLabel] = *k.label
	}
}

// drawPod returns one of the pods on n1 that must leave.
func (m *model) drawPod(t *rapid.T) *corev1.Pod {
	pods := slices.DeleteFunc(m.PodsOn("n1"), func(p *corev1.Pod) bool { return p.Namespace == "kube-system" })
	if len(pods) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(pods).Draw(t, "pod")
}

// comesToAnEnd takes away all that blocks: then it succeeds, and gives back what it found.
func (m *model) comesToAnEnd() {
	m.rival.stop("", 0)
	for _, app := range []string{"web", "db"} {
		m.DeleteBudget("shop", app)
	}
	m.DeleteLease(leaseNS, "node-n1")
	synctest.Wait()
	if m.us.stored.Done() {
		m.us.stop("", 0)
	}
	began := time.Now()
	for m.us.pass("", 0); m.us.stored.Phase != maintenance.Succeeded || len(m.PodsOn("n1")) > 1; m.us.pass("", 0) {
		require.Less(m.t, time.Since(began), 30*time.Minute, "%+v", m.us.stored)
		m.check(m.t)
		<-time.After(max(m.us.stored.RetryAfter, time.Millisecond))
	}
	require.True(m.t, m.us.holds())
	m.us.stop("", 0)
	require.Empty(m.t, m.record())
	m.check(m.t)
	require.Empty(m.t, m.Leases())
}
