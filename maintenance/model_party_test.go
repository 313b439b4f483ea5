// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/nodemaint/nodemaint/drainer"
	"github.com/nodemaint/nodemaint/lease"
	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

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

func (c skewed) Now() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }

func (c skewed) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (m *model) party(holder string) *party {
	p := &party{m: m, holder: holder, clock: skewed{off: &atomic.Int64{}}}
	p.boot()
	return p
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
