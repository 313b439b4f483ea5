// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nodemaint/nodemaint/test/faults/kit"
	"github.com/nodemaint/nodemaint/test/program"
)

// gone lets the operator come back to an API server that remembers nothing of the time it was away: what it asks
// for is answered 410 Gone.
type gone struct{}

func (gone) name() string  { return "gone" }
func (gone) title() string { return "the operator's watches are answered 410 Gone after a compaction" }

// expired is what client-go says in its log of such a watch, at the level given to the operator here.
const expired = "too old resource version"

func (f gone) run(ctx context.Context, s *stage) (string, error) {
	s.Operator.Kill()
	o, err := s.NewOperator(ctx, f.name(), "--zap-log-level=5")
	if err != nil {
		return "", err
	}
	if err := o.Run(ctx); err != nil {
		return "", err
	}
	nodes, err := s.AddNodes(ctx, f.name(), 10, 5)
	if err != nil {
		return "", err
	}
	tries := 0
	err = s.While(ctx, nodes, func(ctx context.Context) error {
		for range goneTries {
			tries++
			if err := f.away(ctx, s, o); err != nil {
				return err
			}
			if said, err := f.answered(ctx, o); said || err != nil {
				return err
			}
		}
		return errNotGone
	})
	if err != nil {
		return "", err
	}
	if err := s.Rest(ctx); err != nil {
		return "", fmt.Errorf("before the other operator is back: %w", err)
	}
	o.Kill()
	return fmt.Sprintf("watches that have expired, at try %d", tries), s.Operator.Run(ctx)
}

// goneTries is how often it is tried: how a connection breaks decides whether client-go asks for what came since, which has
// expired, or for everything anew.
const goneTries = 5

// away cuts the operator off until the API server has forgotten what happened meanwhile.
func (f gone) away(ctx context.Context, s *stage, o *kit.Operator) error {
	if err := program.Pause(ctx, before); err != nil {
		return err
	}
	o.Proxy.Refuse()
	s.Say("cut off; much happens meanwhile")
	if err := program.Pause(ctx, before); err != nil {
		return err
	}
	if err := s.Cluster.Compact(ctx); err != nil {
		return err
	}
	if err := s.Cluster.RestartAPIServer(ctx); err != nil {
		return err
	}
	return o.Proxy.Pass()
}

// answered says whether a watch is answered 410 Gone once the operator is back.
func (f gone) answered(ctx context.Context, o *kit.Operator) (bool, error) {
	for soon := time.Now().Add(20 * time.Second); time.Now().Before(soon); {
		if said, err := o.Says(expired); said || err != nil {
			return said, err
		}
		if err := program.Pause(ctx, 200*time.Millisecond); err != nil {
			return false, err
		}
	}
	return false, nil
}

var errNotGone = errors.New("no watch was answered 410 Gone")
