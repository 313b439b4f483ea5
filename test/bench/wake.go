// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/nodemaint/nodemaint/test/bench/report"
	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/program"
)

// wake measures how long after a budget lets a pod go its eviction is posted.
type wake struct{ nodes int }

// retry is how long both contenders wait before they post a refused eviction again.
const retry = 5 * time.Second

func (k wake) steps() int { return 2 }

func (k wake) measure(ctx context.Context, b *bench) (report.Section, error) {
	oursTook, err := k.one(ctx, b, ours(b.program), hold)
	if err != nil {
		return report.Section{}, fmt.Errorf("%s: %w", nameOurs, err)
	}
	loopTook, err := k.one(ctx, b, libraryLoop(), loopOver)
	if err != nil {
		return report.Section{}, fmt.Errorf("%s: %w", nameLoop, err)
	}
	us, loop := median(oursTook), median(loopTook)
	return report.Section{
		How: fmt.Sprintf("%d nodes with one pod each that a budget of its own blocks, one node after another. After the first refusal the budget is opened, "+
			"at moments spread over 5 s, which is the rhythm of both contenders' retries. From the moment the disruption controller's update of the budget's status reaches the API server "+
			"to that of the eviction which is accepted, both from the audit log.", k.nodes),
		Columns: durationColumns(),
		Rows:    [][]string{durationRow(nameOurs, oursTook), durationRow(nameLoop, loopTook)},
		Targets: []report.Target{
			{Text: "median under 200 ms", Unit: "ms", Most: 200, Measured: inMilliseconds(us), Timing: true},
			{Text: "median under 1/10 of the library loop's", Most: 0.1, Measured: ratio(us, loop)},
		},
	}, nil
}

// one returns how long each node's pod waited for its eviction after it could go. drain begins to drain a node
// and returns what ends that.
func (k wake) one(ctx context.Context, b *bench, c contender, drain func(context.Context, *stage, string) (func() error, error)) ([]time.Duration, error) {
	b.tell.step(c.name)
	s, err := b.setUp(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.addPinned(ctx, k.nodes, 1, func(int) time.Duration { return 100 * time.Millisecond }); err != nil {
		return nil, err
	}
	budgets := map[string]int{}
	for i := range k.nodes {
		budgets[appOf(i)] = 1
	}
	if err := s.closeBudgets(ctx, budgets); err != nil {
		return nil, err
	}
	if c.prepare != nil {
		if err := c.prepare(ctx, s); err != nil {
			return nil, err
		}
	}
	var out []time.Duration
	for i, n := range s.nodes {
		s.tell.count(i, k.nodes, "nodes")
		stop, err := drain(ctx, s, n)
		if err != nil {
			return nil, err
		}
		took, err := s.openAndWatch(ctx, c.user, n, appOf(i), retry*time.Duration(i)/time.Duration(k.nodes))
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n, err)
		}
		if err := stop(); err != nil {
			return nil, err
		}
		out = append(out, took)
	}
	return out, nil
}

// hold lets the operator hold and drain a node.
func hold(ctx context.Context, s *stage, node string) (func() error, error) {
	return func() error { return nil }, s.createAll(ctx, []string{node})
}

// loopOver runs the library loop for one node.
func loopOver(ctx context.Context, s *stage, node string) (func() error, error) {
	at, err := libraryLoop().begin(ctx, s, []string{node})
	if err != nil {
		return nil, err
	}
	return func() error { _, err := at.end(); return err }, nil
}

// openAndWatch waits until the eviction of a node's pod has been refused, and some time more, opens the budget
// and returns how long after the budget's status said so an eviction was posted that was accepted.
func (s *stage) openAndWatch(ctx context.Context, user, node, app string, later time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := s.awaitRequest(ctx, func(e cluster.AuditEvent) bool { return evicts(e, user, node) && e.Code == 429 }); err != nil {
		return 0, fmt.Errorf("waiting for the budget to refuse: %w", err)
	}
	if err := program.Pause(ctx, later); err != nil {
		return 0, err
	}
	opened := time.Now()
	if err := s.openBudget(ctx, app); err != nil {
		return 0, err
	}
	posted, err := s.awaitRequest(ctx, func(e cluster.AuditEvent) bool { return evicts(e, user, node) && e.Code == 201 })
	if err != nil {
		return 0, fmt.Errorf("waiting for the pod to be evicted: %w", err)
	}
	counted, err := s.awaitRequest(ctx, func(e cluster.AuditEvent) bool {
		return e.Time.After(opened) && e.Resource == "poddisruptionbudgets" && e.Subresource == "status" && e.Name == app && e.Code == 200
	})
	if err != nil {
		return 0, fmt.Errorf("looking for when the budget let the pod go: %w", err)
	}
	return max(0, posted.Time.Sub(counted.Time)), nil // it may have been under way already
}

// evicts reports whether the user asked for the eviction of a pinned pod of that node.
func evicts(e cluster.AuditEvent, user, node string) bool {
	return e.User == user && e.Subresource == "eviction" && strings.HasPrefix(e.Name, node+"-")
}

// awaitRequest returns the first request of that kind in the audit log, once it is there.
func (s *stage) awaitRequest(ctx context.Context, want func(cluster.AuditEvent) bool) (cluster.AuditEvent, error) {
	var found cluster.AuditEvent
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(context.Context) (bool, error) {
		all, err := s.Cluster.ReadAudit(cluster.AuditFilter{})
		for _, e := range all {
			if want(e) {
				found = e
				return true, nil
			}
		}
		return false, err
	})
	return found, err
}
