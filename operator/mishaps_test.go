// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
	"github.com/nodemaint/nodemaint/taint"
)

// outcome is what is seen from outside, at the height of a maintenance and after it.
type outcome struct {
	held, after string
	status      v1beta1.NodeMaintenanceStatus // at the height, without times
	pods        []string
	leases      int
	events      map[string]int32 // those of spec.md section 6, and how often they were told
}

// stage returns what is there when the play begins: a node that others have marked, a pod that a budget
// guards, one that nobody guards, and one that stays.
func stage() []runtime.Object {
	n := mt.Node("n1")
	n.Labels["example.com/rack"] = "7"
	n.Spec.Taints = []corev1.Taint{{Key: "example.com/slow", Value: "disk", Effect: corev1.TaintEffectPreferNoSchedule}}
	return []runtime.Object{
		n, mt.DaemonSet("kube-system", "proxy"), mt.Pod("kube-system", "proxy-x", "n1", mt.OfDaemonSet("proxy")),
		mt.Pod("shop", "lone", "n1"), mt.Pod("shop", "web-0", "n1", mt.Labels(app)),
	}
}

var app = map[string]string{"app": "web"}

// drained is the whole of a maintenance: it starts, is blocked, meets a late pod, is freed, done, meets another late
// pod, is held, and stopped.
func drained(w *world) (out outcome) {
	w.AddBudget("shop", "web", app, 1)
	w.Add(objectFor("a", "n1"))
	w.await("blocked", w.blocked)
	w.Add(mt.Pod("shop", "late", "n1"))
	w.await("rid of the late pod", func() bool { return w.Pod("shop", "late") == nil })
	w.SetDisruptionsAllowed("shop", "web", 1)
	w.succeed()
	w.Add(mt.Pod("shop", "later", "n1"))
	w.await("rid of the later pod", func() bool { return w.Pod("shop", "later") == nil })
	w.succeed()
	w.EditNode("n1", func(n *corev1.Node) { // an administrator who does not know, and others whom it does not concern
		n.Spec.Unschedulable = false
		n.Spec.Taints, _ = taint.Without(n.Spec.Taints, taint.Drain())
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "example.com/new", Effect: corev1.TaintEffectNoSchedule})
		n.Labels["example.com/new"], n.Annotations["example.com/new"] = "yes", "yes"
	})
	w.await("held again", func() bool {
		n := w.Node("n1")
		return n.Spec.Unschedulable && taint.Has(n.Spec.Taints, taint.Drain())
	})
	w.succeed()
	out.held, out.status = looks(w.Node("n1")), timeless(w.status("a"))
	mt.Delete[*v1beta1.NodeMaintenance](w.Cluster, "", "a")
	w.await("gone", func() bool { return w.object("a") == nil })
	return w.curtain(out)
}

// lost is a maintenance whose lease another takes.
func lost(w *world) (out outcome) {
	w.AddBudget("shop", "web", app, 1)
	w.Add(objectFor("a", "n1"))
	w.await("blocked", w.blocked)
	w.steal()
	w.await("given up", func() bool { return w.status("a").Phase == v1beta1.MaintenanceFailed })
	out.held, out.status = looks(w.Node("n1")), timeless(w.status("a"))
	mt.Delete[*v1beta1.NodeMaintenance](w.Cluster, "", "a")
	w.await("gone", func() bool { return w.object("a") == nil })
	return w.curtain(out)
}

// absent is a maintenance of a node that does not exist.
func absent(w *world) (out outcome) {
	w.Add(objectFor("a", "n2"))
	w.await("given up", func() bool { return w.status("a").Phase == v1beta1.MaintenanceFailed })
	out.status = timeless(w.status("a"))
	mt.Delete[*v1beta1.NodeMaintenance](w.Cluster, "", "a")
	w.await("gone", func() bool { return w.object("a") == nil })
	return w.curtain(out)
}

// blocked says whether only the pod that the budget guards is left.
func (w *world) blocked() bool {
	st := w.status("a")
	return reasonOf(st, v1beta1.ConditionDrained) == v1beta1.ReasonBlockedByBudget && len(st.PendingPods) == 1
}

func (w *world) succeed() {
	w.t.Helper()
	w.await("succeeded", func() bool {
		st := w.status("a")
		return st.Phase == v1beta1.MaintenanceSucceeded && len(w.PodsOn("n1")) == 1 && st.LastError == ""
	})
}

// curtain says what is left when all is over.
func (w *world) curtain(out outcome) outcome {
	w.rest()
	out.after, out.leases = looks(w.Node("n1")), len(w.Leases())
	for _, p := range w.Pods() {
		out.pods = append(out.pods, p.Namespace+"/"+p.Name)
	}
	out.events = map[string]int32{}
	for _, e := range w.Events() {
		switch e.Reason {
		case "BeginMaintenance", "SucceedMaintenance", "FailedMaintenance", "UncordonNode", "RemovedMaintenance":
			out.events[e.Reason] += e.Count
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	require.True(w.t, w.blind.Load() || len(w.wrong) == 0, "%v", w.wrong)
	return out
}

// mishaps are what may happen at one write.
var mishaps = []struct {
	name   string
	befall func(w *world, n int) *mt.Rule
}{
	{"died before", func(w *world, n int) *mt.Rule { w.crash = w.CrashBefore(n); return w.crash }},
	{"died after", func(w *world, n int) *mt.Rule { w.crash = w.CrashAfter(n); return w.crash }},
	{"no answer to", func(w *world, n int) *mt.Rule { return w.LoseWrite(n, nil) }},
	{"no way to", func(w *world, n int) *mt.Rule { return w.FailWrite(n, nil) }},
	{"a conflict at", func(w *world, n int) *mt.Rule { return w.FailWrite(n, conflict) }},
	{"watches late from", func(w *world, n int) *mt.Rule { return w.Then(mt.Write(n), func() { w.lag(3) }) }},
	{"watches skip what follows", func(w *world, n int) *mt.Rule { return w.Then(mt.Write(n), func() { w.skip(3) }) }},
	{"died, and woke a little in the past, after", func(w *world, n int) *mt.Rule { return w.reborn(n, 2) }},
	{"died, and woke in the past, after", func(w *world, n int) *mt.Rule { return w.reborn(n, 12) }},
}

// lag lets all caches lag behind for a while.
func (w *world) lag(changes int) {
	w.blind.Store(true)
	w.Lag("*", changes)
	time.AfterFunc(10*time.Second, func() { w.Lag("*", 0) })
}

// skip breaks all watches until something else has changed so often, and has them begin anew after that.
func (w *world) skip(changes int) {
	w.blind.Store(true)
	w.CloseWatches("*")
	broken := w.Fail(mt.On("watch", "*"), nil)
	time.AfterFunc(time.Duration(changes)*mt.Beat, func() {
		w.ExpireHistory()
		broken.Remove()
	})
}

// reborn lets the operator die after the n-th write; what comes in its place sees the past first.
func (w *world) reborn(n, changes int) *mt.Rule {
	w.crash, w.past = w.CrashAfter(n), changes
	return w.crash
}

var conflict = apierrors.NewConflict(schema.GroupResource{}, "it", errors.New("somebody was faster"))

// plays are the maintenances that mishaps befall.
var plays = []struct {
	name string
	play func(*world) outcome
}{{"drained", drained}, {"its lease lost", lost}, {"no such node", absent}}

// deep has every mishap befall every write, and looks at every read; else some writes meet one of them each.
var deep = os.Getenv("DEEP") != ""

// TestMishaps has a mishap at each write of a whole maintenance: the end is the same.
func TestMishaps(t *testing.T) {
	runs := 0
	for _, p := range plays {
		t.Run(p.name, func(t *testing.T) {
			perform := func(befall func(*world) *mt.Rule) (out outcome, hit bool) {
				runs++
				inWorld(t, func(w *world) {
					rule := befall(w)
					out = p.play(w)
					hit = rule.Hits() > 0
				}, stage()...)
				return out, hit
			}
			want, _ := perform(func(w *world) *mt.Rule { return w.FailWrite(0, nil).Times(0) })
			step := 3
			if deep {
				step = 1
			}
			n, more := 1, true
			for ; more; n += step {
				for i, m := range mishaps {
					if !deep && i != n/step%len(mishaps) {
						continue
					}
					var got outcome
					got, more = perform(func(w *world) *mt.Rule { return m.befall(w, n) })
					require.Equal(t, want, got, "%s write %d", m.name, n)
				}
			}
			require.Greater(t, n, 3)
		})
	}
	t.Logf("%d runs", runs)
}

// An operator that begins with a cache from the past finds an object in it that has gone since, and its node is nobody's.
func TestWakesBeforeItsObjectWent(t *testing.T) {
	inWorld(t, func(w *world) {
		before := looks(w.Node("n1"))
		w.Add(objectFor("a", "n1"))
		w.succeed()
		w.rest()
		then := w.version()
		mt.Delete[*v1beta1.NodeMaintenance](w.Cluster, "", "a")
		w.await("gone", func() bool { return w.object("a") == nil })
		w.ClearRequests()
		w.past = w.version() - then + 2
		w.reboot()
		w.rest()
		require.Equal(t, before, looks(w.Node("n1")))
		require.Empty(t, w.Leases())
		require.Empty(t, w.Writes())
	}, stage()...)
}

// TestOldReads has others change what is read, at each read of a maintenance, before the operator has its answer.
func TestOldReads(t *testing.T) {
	runs := 0
	for _, p := range plays {
		t.Run(p.name, func(t *testing.T) {
			perform := func(n int) (out outcome, hit bool) {
				runs++
				inWorld(t, func(w *world) {
					rule := w.Then(mt.NthRead(n), w.meddle)
					out = p.play(w)
					if hit = rule.Hits() > 0; hit {
						require.Contains(w.t, out.after, mt.Meddled)
						w.Unmeddle("n1")
						out.after = looks(w.Node("n1"))
					}
					out.held = ""
				}, stage()...)
				return out, hit
			}
			want, _ := perform(0)
			step := 8
			if deep {
				step = 1
			}
			n, more := 1, true
			for ; more; n += step {
				var got outcome
				got, more = perform(n)
				require.Equal(t, want, got, "read %d", n)
			}
			require.Greater(t, n, 1)
		})
	}
	t.Logf("%d runs", runs)
}

// meddle changes everything that there is, a little.
func (w *world) meddle() {
	w.Meddle()
	if w.object("a") != nil {
		mt.Edit(w.Cluster, "", "a", func(nm *v1beta1.NodeMaintenance) { metav1.SetMetaDataAnnotation(&nm.ObjectMeta, mt.Meddled, "yes") })
	}
}
