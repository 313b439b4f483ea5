// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// BenchmarkStartNothingToDo is the pass that a wake costs for which nothing is owed.
func BenchmarkStartNothingToDo(b *testing.B) {
	for _, row := range []struct {
		name  string
		pods  int
		phase maintenance.Phase
	}{
		{"drained", 0, maintenance.Succeeded},
		{"495PodsLeaving", 495, maintenance.Running},
	} {
		b.Run(row.name, func(b *testing.B) {
			objects := []runtime.Object{mt.Node("n1"), mt.Namespace("shop")}
			for i := range 5 {
				name := fmt.Sprintf("agent-%d", i)
				objects = append(objects, mt.DaemonSet("shop", name), mt.Pod("shop", name, "n1", mt.OfDaemonSet(name)))
			}
			for i := range row.pods {
				objects = append(objects, mt.Pod("shop", fmt.Sprintf("web-%d", i), "n1", mt.OfReplicaSet("web")))
			}
			c := mt.New(mt.Options{Termination: mt.Never}, objects...)
			b.Cleanup(c.Close)
			e := maintenance.New(c.Client(), maintenance.Options{})
			wakes, err := e.Watch(b.Context(), "n1")
			require.NoError(b, err)
			var state maintenance.State
			start := func() {
				next, err := e.Start(b.Context(), "n1", state)
				if err != nil {
					b.Fatal(err)
				}
				state = next
			}
			for before := -1; before != len(c.Requests()); { // until the copies are live and all is done
				if before >= 0 {
					<-wakes
				}
				before = len(c.Requests())
				start()
			}
			require.Equal(b, row.phase, state.Phase)
			require.Equal(b, row.pods, state.Progress.Pending)
			c.ClearRequests()
			b.ReportAllocs()
			for b.Loop() {
				start()
			}
			require.Empty(b, c.Requests(), "there was something to do")
		})
	}
}

func BenchmarkPercent(b *testing.B) {
	p := maintenance.Progress{Recorded: true, Total: 500, Eviction: 495}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.Pending = 1 + i%495
		if p.Percent() > 99 {
			b.Fatal("wrong")
		}
	}
}

// BenchmarkExplain500Pods tells of a node whose pods are all blocked.
func BenchmarkExplain500Pods(b *testing.B) {
	s := maintenance.State{Phase: maintenance.Running, Progress: maintenance.Progress{Recorded: true, Total: 500, Eviction: 500, Pending: 500}}
	for i := range 500 {
		s.Report.Blocked = append(s.Report.Blocked, maintenance.Pod{
			Namespace: "shop", Name: fmt.Sprintf("web-%d", i), Budgets: []maintenance.Budget{{Name: "web", Healthy: 500, Desired: 500}},
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		if cause, _ := s.Explain(); cause != maintenance.CauseBlockedByBudget {
			b.Fatal("wrong")
		}
	}
}
