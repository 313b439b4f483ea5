// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// result is what one contender did with one load.
type result struct {
	name                string
	pods, nodes         int
	wall, first, median time.Duration // until the last, the first and half of the nodes are rid of their pods
	requests            int
	kinds               map[string]int // requests by verb, resource and answer
	used                usage
}

func (r result) perPod() float64 { return float64(r.requests) / float64(max(r.pods, 1)) }

// race lets one contender drain a load, on a cluster of its own.
func race(ctx context.Context, l load, c contender) (result, error) {
	dir, err := os.MkdirTemp("", "nodemaint-bench-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	s, err := setUp(ctx, l, dir)
	if err != nil {
		return result{}, err
	}
	defer s.Cluster.Stop()
	r, err := s.run(ctx, l, c)
	if err != nil {
		return r, fmt.Errorf("%s: %w", c.name, err)
	}
	return r, nil
}

func (s *stage) run(ctx context.Context, l load, c contender) (result, error) {
	g, err := s.measure(ctx, s.nodes)
	if err != nil {
		return result{}, err
	}
	defer g.stop()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if c.prepare != nil {
		if err := c.prepare(ctx, s); err != nil {
			return result{}, err
		}
	}
	began := time.Now()
	at, err := c.begin(ctx, s, s.nodes)
	if err != nil {
		return result{}, err
	}
	if err := g.wait(ctx); err != nil {
		return result{}, err
	}
	r := result{name: c.name, pods: g.pods, nodes: l.nodes}
	times := g.times(began)
	r.first, r.median, r.wall = times[0], times[len(times)/2], times[len(times)-1]
	if r.used, err = at.end(); err != nil {
		return r, err
	}
	events, err := s.requests(c.user, began)
	r.requests = len(events)
	r.kinds = map[string]int{}
	for _, e := range events {
		r.kinds[fmt.Sprintf("%s %s/%s %d", e.Verb, e.Resource, e.Subresource, e.Code)]++
	}
	return r, err
}
