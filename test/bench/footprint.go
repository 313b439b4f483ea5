// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/bench/report"
	"github.com/nodemaint/nodemaint/test/cluster"
)

// footprint measures how much memory the operator takes for a few nodes in a cluster that is small at first,
// and then large.
type footprint struct {
	nodes, drained int
	few, many      int // pods on each node
}

func (k footprint) steps() int { return 2 }

func (k footprint) measure(ctx context.Context, b *bench) (report.Section, error) {
	b.tell.step(fmt.Sprintf("%d pods", k.nodes*k.few))
	s, err := b.setUp(ctx)
	if err != nil {
		return report.Section{}, err
	}
	defer s.close()
	s.tell.say("adding %d nodes", k.nodes)
	if s.nodes, err = s.Cluster.AddNodes(ctx, k.nodes, cluster.NodeOptions{}); err != nil {
		return report.Section{}, err
	}
	small, err := k.peak(ctx, b, s, s.nodes[:k.drained], 0, k.few)
	if err != nil {
		return report.Section{}, err
	}
	if err := s.giveBack(ctx, b.program); err != nil {
		return report.Section{}, err
	}
	b.tell.step(fmt.Sprintf("%d pods", k.nodes*k.many))
	large, err := k.peak(ctx, b, s, s.nodes[k.drained:2*k.drained], k.few, k.many)
	if err != nil {
		return report.Section{}, err
	}
	return k.section(small, large), nil
}

// peak adds pods to all nodes, from that number on each to that, lets the operator drain a few nodes and
// returns its result.
func (k footprint) peak(ctx context.Context, b *bench, s *stage, drained []string, from, to int) (result, error) {
	if err := s.fill(ctx, from, to); err != nil {
		return result{}, err
	}
	r, err := s.drain(ctx, ours(b.program), drained, drained, patience)
	if err == nil && r.cut {
		err = fmt.Errorf("%d nodes were not drained in %s", len(drained), patience)
	}
	return r, err
}

func (k footprint) section(small, large result) report.Section {
	mib := func(r result) float64 { return float64(r.used.peak) / (1 << 20) }
	row := func(pods int, r result) []string {
		return []string{fmt.Sprint(pods * k.nodes), fmt.Sprintf("%.1f MiB", mib(r)), fmt.Sprintf("%.1f MiB", float64(r.used.files)/(1<<20)), seconds(r.used.cpu), fmt.Sprint(len(r.requests)), fmt.Sprint(r.pods)}
	}
	return report.Section{
		How: fmt.Sprintf("%d of %d nodes. The pods are made bound to their nodes, side by side, without the scheduler, and kwok makes them run: first %d a node; then, "+
			"in the same cluster, %d a node. Each time the operator is started anew and drains %d other nodes, from its start to its end; "+
			"the first ones have been given back before.", k.drained, k.nodes, k.few, k.many, k.drained),
		Columns: []string{"pods in the cluster", "peak memory", "of it pages of files", "CPU", "requests", "pods drained"},
		Rows:    [][]string{row(k.few, small), row(k.many, large)},
		Targets: []report.Target{
			{Text: "peak memory at most 80 MiB", Unit: "MiB", Most: 80, Measured: mib(large)},
			{Text: "at most 20 % more than with a tenth of the pods", Unit: "%", Most: 20, Measured: 100 * (mib(large)/mib(small) - 1)},
		},
	}
}

// fill makes the pods of all nodes from one number to another, many at a time.
func (s *stage) fill(ctx context.Context, from, to int) error {
	made := newArrivals(len(s.nodes)*(to-from), s.counting("pods made"))
	all, group := errgroup.WithContext(ctx)
	all.SetLimit(32)
	for _, n := range s.nodes {
		for i := from; i < to; i++ {
			all.Go(func() error {
				p := pinned(fmt.Sprintf("%s-%d", n, i), n, "filler", time.Second)
				made.mark(p.Name)
				return s.Create(group, p)
			})
		}
	}
	if err := all.Wait(); err != nil {
		return fmt.Errorf("making pods: %w", err)
	}
	return s.awaitRunning(ctx, len(s.nodes)*to)
}

// giveBack lets the operator end all maintenances.
func (s *stage) giveBack(ctx context.Context, program string) error {
	s.tell.say("giving the nodes back")
	if err := s.startOperator(ctx, program); err != nil {
		return err
	}
	if err := s.DeleteAllOf(ctx, &v1beta1.NodeMaintenance{}); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var left v1beta1.NodeMaintenanceList
		err := s.List(ctx, &left, client.Limit(1))
		return len(left.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the maintenances to end: %w", err)
	}
	return s.operator.Stop(10 * time.Second)
}
