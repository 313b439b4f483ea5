// SPDX-License-Identifier: Apache-2.0

package drainer_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodemaint/nodemaint/drainer"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// agents are five DaemonSets and what each has on n1: the pods that stay.
func agents() []runtime.Object {
	var out []runtime.Object
	for i := range 5 {
		name := fmt.Sprintf("agent-%d", i)
		out = append(out, mt.DaemonSet("shop", name), mt.Pod("shop", name, "n1", mt.OfDaemonSet(name)))
	}
	return out
}

// crowd is what a full node has: 500 pods, most of a ReplicaSet, every tenth with an emptyDir, and the agents.
func crowd() []runtime.Object {
	out := agents()
	for i := range 495 {
		options := []mt.PodOption{mt.Labels(app), mt.OfReplicaSet("web")}
		if i%10 == 0 {
			options = append(options, mt.EmptyDir())
		}
		out = append(out, mt.Pod("shop", fmt.Sprintf("web-%d", i), "n1", options...))
	}
	return out
}

// watched returns a Drainer that watches n1, once its copies are live: ask makes no request any more.
func watched(b *testing.B, ask func(*drainer.Drainer) error, objects ...runtime.Object) (*mt.Cluster, *drainer.Drainer) {
	b.Helper()
	c := mt.New(mt.Options{Termination: mt.Never}, append([]runtime.Object{mt.Node("n1"), mt.Namespace("shop")}, objects...)...)
	b.Cleanup(c.Close)
	d := drainer.New(c.Client(), drainer.Options{})
	b.Cleanup(func() { d.Cancel("n1") })
	wakes := make(chan struct{}, 1)
	d.Watch(b.Context(), "n1", func() {
		select {
		case wakes <- struct{}{}:
		default:
		}
	})
	for {
		before := len(c.Requests())
		require.NoError(b, ask(d))
		if len(c.Requests()) == before {
			return c, d
		}
		<-wakes
	}
}

func BenchmarkPlan500Pods(b *testing.B) {
	plan := func(d *drainer.Drainer) error {
		_, err := d.Plan(b.Context(), "n1")
		return err
	}
	c, d := watched(b, plan, crowd()...)
	c.ClearRequests()
	b.ReportAllocs()
	for b.Loop() {
		if err := plan(d); err != nil {
			b.Fatal(err)
		}
	}
	require.Empty(b, c.Matching(mt.On("list", "pods")), "what is measured is the plan, not a list")
}

func BenchmarkPassNothingToDo(b *testing.B) {
	for _, row := range []struct {
		name    string
		objects []runtime.Object
		pending int
	}{
		{"drained", agents(), 0},
		{"495PodsLeaving", crowd(), 495},
	} {
		b.Run(row.name, func(b *testing.B) {
			pass := func(d *drainer.Drainer) error {
				_, err := d.Pass(b.Context(), "n1")
				return err
			}
			c, d := watched(b, pass, row.objects...)
			c.ClearRequests()
			b.ReportAllocs()
			for b.Loop() {
				if err := pass(d); err != nil {
					b.Fatal(err)
				}
			}
			require.Empty(b, c.Requests(), "there was something to do")
			r, err := d.Plan(b.Context(), "n1")
			require.NoError(b, err)
			require.Len(b, r.Pending(), row.pending)
		})
	}
}
