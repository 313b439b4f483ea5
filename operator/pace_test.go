// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestPace(t *testing.T) {
	for _, tt := range []struct {
		reason       string
		going, done  int // other objects
		writes       int // of ours before
		least, most  time.Duration
		furtherAway  time.Duration // since the last write
		mayBeWritten bool
	}{
		{"the first is due at once", 0, 0, 0, 0, 0, 0, true},
		{"a single drain is written about once a second", 0, 0, 1, time.Second, 1500 * time.Millisecond, 0, false},
		{"and may be after that", 0, 0, 1, 0, 0, 1200 * time.Millisecond, true},
		{"one that takes long more seldom", 0, 0, 50, 5 * time.Second, 5 * time.Second, 0, false},
		{"many under way share what there is", 39, 0, 1, 20 * time.Second, 20 * time.Second, 0, false},
		{"a great many as well, up to a limit", 999, 0, 1, 2 * time.Minute, 2 * time.Minute, 0, false},
		{"those that only hold their nodes cost nothing", 0, 500, 1, time.Second, 1500 * time.Millisecond, 0, false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			p, now := newPace(), time.Now()
			for i := range tt.going {
				p.wrote(fmt.Sprintf("going-%d", i), v1beta1.MaintenanceRunning, now)
			}
			for i := range tt.done {
				name := fmt.Sprintf("done-%d", i)
				p.wrote(name, v1beta1.MaintenanceRunning, now)
				p.wrote(name, v1beta1.MaintenanceSucceeded, now)
			}
			for range tt.writes {
				p.wrote("ours", v1beta1.MaintenanceRunning, now)
			}
			pause := p.pause("ours", now.Add(tt.furtherAway))
			require.Equal(t, tt.mayBeWritten, pause <= 0)
			if !tt.mayBeWritten {
				require.GreaterOrEqual(t, pause, tt.least)
				require.LessOrEqual(t, pause, tt.most)
			}
			p.forget("ours")
			require.LessOrEqual(t, p.pause("ours", now), time.Duration(0))
		})
	}
}

// The operator's own pod is evicted after the status is stored that says that only it is left, however many other
// objects are under way and have to share the writes.
func TestItselfLeavesAfterTheStatusIsStored(t *testing.T) {
	objects := []runtime.Object{mt.Node("n1"), mt.Pod(itself.Namespace, itself.Name, "n1")}
	for i := range 3 {
		objects = append(objects, mt.Pod("shop", fmt.Sprintf("web-%d", i), "n1"))
	}
	for i := range 8 {
		node := fmt.Sprintf("other-%d", i)
		objects = append(objects, mt.Node(node), mt.Pod("shop", node, node, mt.Labels(app)), objectFor(node, node))
	}
	inWorld(t, func(w *world) {
		w.AddBudget("shop", "web", app, 8)
		w.rest()
		var stored []v1beta1.PodReference // as it is evicted
		w.OnRequest(func(r mt.Request) error {
			if r.Subresource == "eviction" && r.Name == itself.Name {
				stored = w.status("a").PendingPodsRefs
			}
			return nil
		})
		w.Add(objectFor("a", "n1"))
		w.await("succeeded", func() bool { return w.status("a").Phase == v1beta1.MaintenanceSucceeded })
		require.Equal(t, []v1beta1.PodReference{itself}, stored)
	}, objects...)
}
