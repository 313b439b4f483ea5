// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

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
	err = s.While(ctx, nodes, func(ctx context.Context) error {
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
		if err := o.Proxy.Pass(); err != nil {
			return err
		}
		return s.Until(ctx, "a watch to be answered 410 Gone", func(context.Context) error {
			said, err := o.Says(expired)
			if err == nil && !said {
				err = errNotGone
			}
			return err
		})
	})
	if err != nil {
		return "", err
	}
	if err := s.Rest(ctx); err != nil {
		return "", fmt.Errorf("before the other operator is back: %w", err)
	}
	o.Kill()
	return "watches that have expired", s.Operator.Run(ctx)
}

var errNotGone = errors.New("no watch was answered so")
