// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/nodemaint/nodemaint/test/faults/kit"
)

// sameName deletes nodes full of pods during their maintenance, and makes others of the same names at once.
type sameName struct{}

func (sameName) name() string  { return "same-name" }
func (sameName) title() string { return "full nodes are deleted and made again under their names" }

func (f sameName) run(ctx context.Context, s *stage) (string, error) {
	nodes, err := s.AddNodes(ctx, f.name(), 9, 5)
	if err != nil {
		return "", err
	}
	if err := maintainAll(ctx, s, nodes); err != nil {
		return "", err
	}
	g, making := errgroup.WithContext(ctx)
	for _, n := range nodes { // beside each other, since kwok takes its time to serve each
		g.Go(func() error { return s.MakeAgain(making, n) })
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	for _, n := range nodes {
		if err := errors.Join(s.Gone(ctx, n), f.again(ctx, s, n)); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d nodes, of which none was taken for the one before", len(nodes)), nil
}

// again maintains the node that came after.
func (sameName) again(ctx context.Context, s *stage, n kit.Node) error {
	return errors.Join(s.Fill(ctx, n), s.Maintain(ctx, n))
}
