// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/nodemaint/nodemaint/test/bench/report"
	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
	"github.com/nodemaint/nodemaint/test/program"
)

// idle measures what the operator costs while it can do nothing: every node is blocked.
type idle struct {
	nodes  int
	window time.Duration
}

// idleBudgets is how many budgets block the pods.
const idleBudgets = 10

func (k idle) steps() int { return 1 }

func (k idle) measure(ctx context.Context, b *bench) (report.Section, error) {
	b.tell.step(nameOurs)
	s, err := b.setUp(ctx)
	if err != nil {
		return report.Section{}, err
	}
	defer s.close()
	if err := k.block(ctx, s); err != nil {
		return report.Section{}, err
	}
	if err := s.startOperator(ctx, b.program); err != nil {
		return report.Section{}, err
	}
	if err := s.createAll(ctx, s.nodes); err != nil {
		return report.Section{}, err
	}
	if err := k.settle(ctx, s); err != nil {
		return report.Section{}, err
	}
	used, events, err := k.watch(ctx, s)
	if err != nil {
		return report.Section{}, err
	}
	return k.section(used, events), nil
}

// block makes the nodes, each with one pod, and budgets that let none of them go.
func (k idle) block(ctx context.Context, s *stage) error {
	var err error
	if s.nodes, err = s.Cluster.AddNodes(ctx, k.nodes, cluster.NodeOptions{Prefix: "blocked-"}); err != nil {
		return err
	}
	budgets := map[string]int{}
	for i, n := range s.nodes {
		app := appOf(i % idleBudgets)
		budgets[app]++
		if err := s.Create(ctx, pinned(n+"-0", n, app, time.Second)); err != nil {
			return err
		}
	}
	if err := s.awaitRunning(ctx, k.nodes); err != nil {
		return err
	}
	return s.closeBudgets(ctx, budgets)
}

// settle waits until every pod's eviction has been refused twice: what begins a maintenance is over.
func (k idle) settle(ctx context.Context, s *stage) error {
	s.tell.say("waiting for all %d nodes to be blocked", k.nodes)
	err := wait.PollUntilContextTimeout(ctx, time.Second, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		all, err := s.Cluster.ReadAudit(cluster.AuditFilter{User: deploy.User, Verb: "create"})
		seen := map[string]int{}
		for _, e := range all {
			if e.Subresource == "eviction" && e.Code == 429 {
				seen[e.Name]++
			}
		}
		twice := 0
		for _, n := range seen {
			if n > 1 {
				twice++
			}
		}
		return twice == k.nodes, err
	})
	if err != nil {
		return fmt.Errorf("waiting for all pods to be refused twice: %w", err)
	}
	return nil
}

// watch returns the CPU time that the operator used in the window, and its requests.
func (k idle) watch(ctx context.Context, s *stage) (time.Duration, []cluster.AuditEvent, error) {
	s.tell.say("%d nodes are blocked; counting for %s", k.nodes, k.window)
	from := time.Now()
	before, err := cpuSoFar(s.operator.PID())
	if err != nil {
		return 0, nil, err
	}
	if err := program.Pause(ctx, k.window); err != nil {
		return 0, nil, err
	}
	after, err := cpuSoFar(s.operator.PID())
	if err != nil {
		return 0, nil, err
	}
	until := time.Now()
	all, err := s.requests(deploy.User, from)
	var within []cluster.AuditEvent
	for _, e := range all {
		if e.Time.Before(until) {
			within = append(within, e)
		}
	}
	return after - before, within, err
}

// section works out what that is a minute.
func (k idle) section(used time.Duration, events []cluster.AuditEvent) report.Section {
	evictions := map[string]int{} // by pod
	others := 0
	for _, e := range events {
		if e.Subresource == "eviction" {
			evictions[e.Name]++
		} else {
			others++
		}
	}
	most := 0
	for _, n := range evictions {
		most = max(most, n)
	}
	minutes := k.window.Minutes()
	perPod, perNode := float64(most)/minutes, float64(others)/minutes/float64(k.nodes)
	share := 100 * ratio(used, k.window)
	return report.Section{
		How: fmt.Sprintf("%d nodes with one pod each, which one of %d budgets blocks, for %g minutes from the moment each has been refused twice. "+
			"CPU is what the operating system counts for the operator's process.", k.nodes, idleBudgets, k.window.Minutes()),
		Columns: []string{"contender", "evictions a minute, of the pod with most", "other requests a minute a node", "CPU"},
		Rows:    [][]string{{nameOurs, fmt.Sprintf("%.1f", perPod), fmt.Sprintf("%.2f", perNode), fmt.Sprintf("%.1f %% of a core", share)}},
		Targets: []report.Target{
			{Text: "at most 12 evictions a minute a blocked pod", Most: 12, Measured: perPod},
			{Text: "at most 2 other requests a minute a node", Most: 2, Measured: perNode},
			{Text: "CPU under 5 % of a core", Unit: "%", Most: 5, Measured: share, Timing: true},
		},
	}
}
