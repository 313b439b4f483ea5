// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
	"github.com/nodemaint/nodemaint/taint"
)

// deep has every mishap befall every write, and looks at every read; else each write meets one of them.
var deep = os.Getenv("DEEP") != ""

// keeper is a process that watches and maintains n1, and stores its state after each pass.
type keeper struct {
	*stage
	crash  *mt.Rule // of the process
	past   int      // how many changes ago the next process sees first
	stored maintenance.State
	wakes  <-chan struct{}
}

// reborn says whether the process has died; if so, another takes its place, which knows what was stored.
func (k *keeper) reborn() bool {
	if k.crash == nil || k.crash.Hits() == 0 {
		return false
	}
	k.restart()
	k.crash.Remove()
	k.crash = nil
	if k.past > 0 {
		k.lag(k.past)
	}
	k.wakes = k.watch()
	return true
}

// drive makes passes, each when it is woken or due, until it is so.
func (k *keeper) drive(what string, isSo func() bool) {
	k.t.Helper()
	for range 1000 {
		k.reborn()
		if isSo() {
			return
		}
		pause := time.Second
		next, err := k.Start(k.t.Context(), "n1", k.stored)
		if k.crash == nil || k.crash.Hits() == 0 {
			if err == nil {
				k.stored, pause = next, max(next.RetryAfter, time.Millisecond)
			}
			select {
			case <-k.wakes:
			case <-time.After(pause):
			}
		}
	}
	require.Fail(k.t, "never "+what, "%+v", k.stored)
}

func (k *keeper) end() {
	for {
		_, err := k.Stop(k.t.Context(), "n1")
		if !k.reborn() && err == nil {
			return
		}
		advance(time.Second)
	}
}

// lag lets all caches lag behind for a while.
func (k *keeper) lag(changes int) {
	k.Lag("*", changes)
	time.AfterFunc(10*time.Second, func() { k.Lag("*", 0) })
}

// skip breaks all watches until something else has changed so often, and has them begin anew after that.
func (k *keeper) skip(changes int) {
	k.CloseWatches("*")
	broken := k.Fail(mt.On("watch", "*"), nil)
	time.AfterFunc(time.Duration(changes)*mt.Beat, func() {
		k.ExpireHistory()
		broken.Remove()
	})
}

// whole is the whole of a maintenance: it starts, is blocked, meets a late pod, is freed, done, meets another late
// pod, is held, and stopped. It returns what is seen of it from outside.
func (k *keeper) whole() (out outcome) {
	defer k.Heartbeat()()
	k.wakes = k.watch()
	k.AddBudget("shop", "web", app, 1)
	only := func(pods ...string) func() bool {
		return func() bool {
			var left []string
			for _, p := range k.stored.Report.Pending() {
				left = append(left, p.Name)
			}
			return k.stored.Looked && slices.Equal(pods, left)
		}
	}
	k.drive("blocked", only("web-0"))
	k.Add(mt.Pod("shop", "late", "n1"))
	k.drive("rid of the late pod", func() bool { return k.Pod("shop", "late") == nil })
	k.SetDisruptionsAllowed("shop", "web", 1)
	succeeded := func() bool { return k.stored.Phase == maintenance.Succeeded && len(k.PodsOn("n1")) == 0 }
	k.drive("succeeded", succeeded)
	k.Add(mt.Pod("shop", "later", "n1"))
	k.drive("rid of the later pod", succeeded)
	k.EditNode("n1", func(n *corev1.Node) { // an administrator who does not know, and others whom it does not concern
		n.Spec.Unschedulable = false
		n.Spec.Taints, _ = taint.Without(n.Spec.Taints, taint.Drain())
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "example.com/new", Effect: corev1.TaintEffectNoSchedule})
		n.Labels["example.com/new"], n.Annotations["example.com/new"] = "yes", "yes"
	})
	k.drive("held again", func() bool {
		n := k.Node("n1")
		return n.Spec.Unschedulable && taint.Has(n.Spec.Taints, taint.Drain()) && succeeded()
	})
	out.held = looks(k.Node("n1"))
	k.end()
	advance(time.Minute)
	k.reborn()
	l := life{stage: k.stage}
	out.after, out.pods, out.lease, out.steps = looks(k.Node("n1")), len(k.PodsOn("n1")), l.holder(), l.firstSteps()
	return out
}

// TestEveryMishap has a mishap at each write of a whole maintenance that is watched: the end is the same.
func TestEveryMishap(t *testing.T) {
	reborn := func(k *keeper, n, changes int) *mt.Rule {
		k.crash, k.past = k.CrashAfter(n), changes
		return k.crash
	}
	all := []struct {
		name   string
		befall func(k *keeper, n int) *mt.Rule
	}{
		{"died before", func(k *keeper, n int) *mt.Rule { k.crash = k.CrashBefore(n); return k.crash }},
		{"died after", func(k *keeper, n int) *mt.Rule { return reborn(k, n, 0) }},
		{"no answer to", func(k *keeper, n int) *mt.Rule { return k.LoseWrite(n, nil) }},
		{"no way to", func(k *keeper, n int) *mt.Rule { return k.FailWrite(n, nil) }},
		{"a conflict at", func(k *keeper, n int) *mt.Rule { return k.FailWrite(n, errConflict) }},
		{"watches late from", func(k *keeper, n int) *mt.Rule { return k.Then(mt.Write(n), func() { k.lag(3) }) }},
		{"watches skip what follows", func(k *keeper, n int) *mt.Rule { return k.Then(mt.Write(n), func() { k.skip(3) }) }},
		{"died, and woke a little in the past, after", func(k *keeper, n int) *mt.Rule { return reborn(k, n, 2) }},
		{"died, and woke in the past, after", func(k *keeper, n int) *mt.Rule { return reborn(k, n, 12) }},
	}
	runs := 0
	play := func(befall func(*keeper) *mt.Rule) (out outcome, hit bool) {
		runs++
		onStage(t, func(_ *testing.T, s *stage) {
			k := &keeper{stage: s}
			rule := befall(k)
			out = k.whole()
			hit = rule.Hits() > 0
		}, webPod(), mt.Pod("shop", "lone", "n1"))
		return out, hit
	}
	want, _ := play(func(k *keeper) *mt.Rule { return k.FailWrite(1, nil).Times(0) })
	n, more := 1, true
	for ; more; n++ {
		for i, m := range all {
			if !deep && i != n%len(all) {
				continue
			}
			var got outcome
			got, more = play(func(k *keeper) *mt.Rule { return m.befall(k, n) })
			require.Equal(t, want, got, "%s write %d", m.name, n)
		}
	}
	require.Greater(t, n, 10)
	t.Logf("%d runs", runs)
}

// TestOldReads has others change what is read, at each read of a maintenance, before its answer is there.
func TestOldReads(t *testing.T) {
	runs := 0
	play := func(n int) (out outcome, hit bool) {
		runs++
		onStage(t, func(t *testing.T, s *stage) {
			k := &keeper{stage: s}
			rule := k.Then(mt.NthRead(n), k.Meddle)
			out = k.whole()
			if hit = rule.Hits() > 0; hit {
				require.Contains(t, out.after, mt.Meddled)
				k.Unmeddle("n1")
				out.after = looks(k.Node("n1"))
			}
			out.held = ""
		}, webPod(), mt.Pod("shop", "lone", "n1"))
		return out, hit
	}
	want, _ := play(0)
	step := 3
	if deep {
		step = 1
	}
	n, more := 1, true
	for ; more; n += step {
		var got outcome
		got, more = play(n)
		require.Equal(t, want, got, "read %d", n)
	}
	require.Greater(t, n, 5)
	t.Logf("%d runs", runs)
}
