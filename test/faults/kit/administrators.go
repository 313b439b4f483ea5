// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nodemaint/nodemaint/test/program"
)

// While lets administrators, one for each node, put the nodes in and out of maintenance at random while f goes on.
// Then they leave everything as it is. Errors: that of f, or of an administrator who had to wait too long, which
// ends f.
func (s *Stage) While(ctx context.Context, nodes []Node, f func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	working, home := context.WithCancel(ctx)
	defer home()
	for _, n := range nodes {
		a := &administrator{stage: s, node: n, rand: s.Random(n.Name), every: max(100*time.Millisecond, time.Duration(len(nodes))*10*time.Millisecond)}
		g.Go(func() error { return a.work(working) })
	}
	g.Go(func() error {
		defer home()
		return f(ctx)
	})
	return g.Wait()
}

// Random returns what decides what happens to something at random: the same for the same seed and name.
func (s *Stage) Random(name string) *rand.Rand {
	h := fnv.New64()
	fmt.Fprint(h, name)
	return rand.New(rand.NewPCG(s.Seed, h.Sum64())) //nolint:gosec // it is to be repeatable
}

// administrator maintains one node over and over.
type administrator struct {
	stage *Stage
	node  Node
	rand  *rand.Rand
	every time.Duration // between two looks
}

// work goes on until ctx ends, which is no error.
func (a *administrator) work(ctx context.Context) error {
	for round := 0; ctx.Err() == nil; round++ {
		if err := a.round(ctx, round); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// round puts the node under maintenance and gives it back: most often when it is drained, now and then whatever is
// being done. Others change the node meanwhile, and a budget may hold it up for a time.
func (a *administrator) round(ctx context.Context, number int) error {
	s, n := a.stage, a.node
	held := n.Budgeted && a.rand.IntN(2) == 0
	for _, step := range []func(context.Context, Node) error{a.hold(held), s.Fill, a.think, s.Maintain} {
		if err := step(ctx, n); err != nil {
			return err
		}
	}
	if a.rand.IntN(3) == 0 {
		if err := s.Touch(ctx, n, fmt.Sprintf("round-%d", number)); err != nil {
			return err
		}
	}
	if err := a.think(ctx, n); err != nil {
		return err
	}
	if a.rand.IntN(3) > 0 {
		if err := s.Allow(ctx, n); err != nil {
			return err
		}
		if err := until(ctx, a.every, "the maintenance of node "+n.Name+" to succeed", s.is(n, Succeeded)); err != nil {
			return err
		}
	}
	if err := s.GiveBack(ctx, n); err != nil {
		return err
	}
	if err := until(ctx, a.every, "the maintenance of node "+n.Name+" to go", s.isGone(n)); err != nil {
		return err
	}
	s.Finished.Add(1)
	return nil
}

func (a *administrator) hold(held bool) func(context.Context, Node) error {
	if held {
		return a.stage.Forbid
	}
	return a.stage.Allow
}

// think takes up to two seconds.
func (a *administrator) think(ctx context.Context, _ Node) error {
	return program.Pause(ctx, time.Duration(a.rand.Int64N(int64(2*time.Second))))
}
