// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/nodemaint/nodemaint/drainer"
	"github.com/nodemaint/nodemaint/lease"
	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
	"github.com/nodemaint/nodemaint/taint"
)

// TestModel lets everybody who has to do with a node do what they may, in any order, and looks after each step
// whether what must always be so is so.
func TestModel(t *testing.T) {
	fewer(t)
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			m := newModel(t)
			defer m.over()
			t.Repeat(m.actions())
			m.comesToAnEnd()
		})
	})
}

// fewer makes the model run a few times only, unless -rapid.checks says how often: make it some thousands to look
// deeper.
func fewer(t *testing.T) {
	const name = "rapid.checks"
	given := os.Getenv("RAPID_CHECKS") != ""
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return
	}
	was := flag.Lookup(name).Value.String()
	t.Cleanup(func() { require.NoError(t, flag.Set(name, was)) })
	require.NoError(t, flag.Set(name, "40"))
}

// model is a cluster with the node n1, who maintains it, and what is known of it beside the cluster itself.
type model struct {
	*mt.Cluster
	t      *rapid.T
	us     *party
	rival  *party
	turn   *party // whose requests come in now
	wrongs []string

	theirs  marks             // what would stand there without us
	foreign map[string]string // labels that nobody of us knows
	pods    int               // ever made
	things  int
}

// marks are what an administrator may have put on a node that we put on it too.
type marks struct {
	unschedulable bool
	drain, label  *string // values; nil if there is none
}

// party is one who maintains n1: an engine with a holder of its own, that may die, and what it stored.
type party struct {
	*maintenance.Engine
	m       *model
	holder  string
	clock   skewed
	stored  maintenance.State
	began   bool      // and not stopped since
	counted time.Time // the last failure, by the party's clock
	unwatch context.CancelFunc

	givesBack bool // it may do so in this call
}

// skewed is a clock that somebody sets.
type skewed struct {
	clock.RealClock
	off *atomic.Int64
}

func (c skewed) Now() time.Time                  { return time.Now().Add(time.Duration(c.off.Load())) }
func (c skewed) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func newModel(t *rapid.T) *model {
	m := &model{
		Cluster: mt.New(mt.Options{Termination: 2 * time.Second, Controllers: []mt.Controller{mt.UnschedulableTaint, mt.BudgetStatus}},
			mt.Node("n1"), mt.DaemonSet("kube-system", "proxy"), mt.Pod("kube-system", "proxy-x", "n1", mt.OfDaemonSet("proxy"))),
		t: t, foreign: map[string]string{},
	}
	m.us = m.party(maintenance.DefaultHolder)
	m.rival = m.party("rival")
	m.OnRequest(m.witness)
	return m
}

func (m *model) party(holder string) *party {
	p := &party{m: m, holder: holder, clock: skewed{off: &atomic.Int64{}}}
	p.boot()
	return p
}

func (m *model) over() {
	m.us.leave()
	m.rival.leave()
	synctest.Wait()
	m.Close()
	synctest.Wait()
}

// boot begins with an engine that remembers nothing.
func (p *party) boot() {
	p.leave()
	c := p.m.Client()
	p.Engine = maintenance.New(c, maintenance.Options{
		Lease:   lease.NewManager(c, p.holder, lease.Options{Clock: p.clock}),
		Drainer: drainer.New(c, drainer.Options{Clock: p.clock}),
		Clock:   p.clock,
	})
}

func (p *party) leave() {
	if p.unwatch != nil {
		p.unwatch()
		p.unwatch = nil
		synctest.Wait()
	}
}

func (p *party) watch() {
	p.leave()
	ctx, cancel := context.WithCancel(context.Background())
	p.unwatch = cancel
	_, err := p.Watch(ctx, "n1")
	require.NoError(p.m.t, err)
	synctest.Wait()
}

// String is for what rapid tells of its draws.
func (p *party) String() string { return p.holder }

// GoString is too.
func (p *party) GoString() string { return p.holder }

// holds says whether the lease is the party's, and valid by its clock.
func (p *party) holds() bool {
	l := p.m.Lease(leaseNS, "node-n1")
	return l != nil && ptr.Deref(l.Spec.HolderIdentity, "") == p.holder && l.Spec.RenewTime != nil &&
		p.clock.Now().Before(l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second))
}

// heldByAnother says whether the lease is somebody else's, and valid by the party's clock.
func (p *party) heldByAnother() bool {
	l := p.m.Lease(leaseNS, "node-n1")
	if l == nil || ptr.Deref(l.Spec.HolderIdentity, "") == "" || *l.Spec.HolderIdentity == p.holder {
		return false
	}
	return p.clock.Now().Before(l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second))
}

// witness looks at each write as it arrives.
func (m *model) witness(r mt.Request) error {
	wrong := func(why string) {
		m.wrongs = append(m.wrongs, m.turn.holder+": "+r.String()+" "+string(r.Patch)+": "+why)
	}
	switch {
	case r.Subresource == "eviction":
		p := m.Pod(r.Namespace, r.Name)
		if p == nil || p.UID != *r.Preconditions.UID {
			wrong("of a pod that is another or none")
		} else if p.DeletionTimestamp != nil {
			wrong("of a pod that goes already")
		} else if p.Spec.NodeName != "n1" {
			wrong("of a pod of another node")
		}
		if !m.turn.holds() {
			wrong("without the lease")
		}
	case r.Verb == "patch" && r.Resource == "nodes":
		if strings.Contains(deed(r), "+") && !m.turn.givesBack && !m.turn.holds() {
			wrong("without the lease")
		}
	case r.Write() && r.Resource == "leases" && m.turn.heldByAnother():
		wrong("on another's lease")
	}
	return nil
}

// pass makes one pass of p, which may die at one of its writes.
func (p *party) pass(dies string, after int) {
	before := p.stored
	p.givesBack = before.LeaseErrors > 2
	next, err := p.within(dies, after, func() (maintenance.State, error) { return p.Start(p.m.t.Context(), "n1", before) })
	if err != nil {
		return
	}
	p.began, p.stored = true, stored(p.m.t, next)
	p.judge(before, next)
}

// stored returns s as it is when it has been stored and read again, but for when the next pass is due.
func stored(t *rapid.T, s maintenance.State) maintenance.State {
	text, err := json.Marshal(s)
	require.NoError(t, err)
	out := maintenance.State{RetryAfter: s.RetryAfter}
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// judge looks at what a pass said.
func (p *party) judge(before, next maintenance.State) {
	t, now := p.m.t, p.clock.Now()
	percent := next.Progress.Percent()
	require.True(t, percent >= 0 && percent <= 100)
	left := slices.DeleteFunc(p.m.PodsOn("n1"), func(p *corev1.Pod) bool { return p.Namespace == "kube-system" })
	if next.Looked && len(left) > 0 {
		require.NotEqual(t, maintenance.Succeeded, next.Phase, "%d pods are left", len(left))
		require.NotEqual(t, 100, percent, "%d pods are left", len(left))
	}
	if before.Done() {
		require.Equal(t, before.LeaseErrors, next.LeaseErrors)
		return
	}
	switch {
	case next.LeaseErrors > before.LeaseErrors:
		require.Equal(t, before.LeaseErrors+1, next.LeaseErrors)
		require.True(t, p.counted.IsZero() || before.LeaseErrors == 0 || now.Sub(p.counted).Abs() >= maintenance.LeaseRetry, "failures count 5 s apart")
		p.counted = now
	case next.LeaseErrors < before.LeaseErrors:
		require.Zero(t, next.LeaseErrors)
		require.Equal(t, maintenance.LeaseHeld, next.Lease)
	}
	require.Equal(t, next.LeaseErrors > 3, next.Phase == maintenance.Failed)
	if next.Lease == maintenance.LeaseHeld && !next.Done() {
		require.Zero(t, next.LeaseErrors)
		require.True(t, p.holds())
	}
}

// stop stops the maintenance of p, which may die at one of its writes; then it is stopped again.
func (p *party) stop(dies string, after int) {
	p.givesBack = true
	for {
		_, err := p.within(dies, after, func() (maintenance.State, error) {
			_, err := p.Stop(p.m.t.Context(), "n1")
			return maintenance.State{}, err
		})
		dies = ""
		if err == nil {
			break
		}
	}
	p.began, p.stored, p.counted = false, maintenance.State{}, time.Time{}
	if r := p.m.record(); r != "" {
		require.NotContains(p.m.t, r, `"holder":"`+p.holder+`"`, "its record is off")
	}
	l := p.m.Lease(leaseNS, "node-n1")
	require.True(p.m.t, l == nil || ptr.Deref(l.Spec.HolderIdentity, "") != p.holder, "its lease is released")
}

// within makes a call of p, whose process may die at one of the writes that it makes.
func (p *party) within(dies string, after int, call func() (maintenance.State, error)) (maintenance.State, error) {
	p.m.turn = p
	p.m.ClearRequests()
	var crash *mt.Rule
	switch dies {
	case "before":
		crash = p.m.CrashBefore(after)
	case "after":
		crash = p.m.CrashAfter(after)
	}
	next, err := call()
	if crash != nil {
		defer crash.Remove()
		if crash.Hits() > 0 {
			p.boot()
			crash.Remove()
			return next, mt.ErrCrashed
		}
	} else {
		require.NoError(p.m.t, err)
	}
	synctest.Wait()
	return next, err
}

func (m *model) record() string { return m.Node("n1").Annotations[maintenance.RecordAnnotation] }

// check looks at the node.
func (m *model) check(t *rapid.T) {
	synctest.Wait()
	require.Empty(t, m.wrongs)
	n := m.Node("n1")
	foreign := maps.Clone(n.Labels)
	delete(foreign, maintenance.ExcludeLabel)
	delete(foreign, "kubernetes.io/hostname")
	require.Equal(t, m.foreign, foreign, "labels of others")
	for k, v := range m.foreign {
		require.Contains(t, n.Spec.Taints, corev1.Taint{Key: k, Value: v, Effect: corev1.TaintEffectPreferNoSchedule})
		require.Equal(t, v, n.Annotations[k])
	}
	require.Equal(t, len(m.foreign), len(slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return m.foreign[t.Key] == "" })))
	if m.record() == "" {
		require.Equal(t, m.theirs.String(), marksOf(n).String(), "without a record the node is as others want it")
	}
}

// marksOf returns the marks on n.
func marksOf(n *corev1.Node) marks {
	out := marks{unschedulable: n.Spec.Unschedulable}
	for _, t := range n.Spec.Taints {
		if t.Key == taint.DrainKey {
			out.drain = ptr.To(t.Value)
		}
	}
	if v, ok := n.Labels[maintenance.ExcludeLabel]; ok {
		out.label = &v
	}
	return out
}

func (k marks) String() string {
	return fmt.Sprintf("unschedulable %t, drain %q, label %q", k.unschedulable, ptr.Deref(k.drain, "none"), ptr.Deref(k.label, "none"))
}

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
