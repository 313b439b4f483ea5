// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nodemaint/nodemaint/test/program"
)

// kill ends the operator by SIGKILL at random moments: of its start, and of its work.
type kill struct{ times int }

func (kill) name() string { return "kill" }
func (k kill) title() string {
	return fmt.Sprintf("the operator is killed at %d random moments", k.times)
}

func (k kill) run(ctx context.Context, s *stage) (string, error) {
	nodes, err := s.AddNodes(ctx, k.name(), 10, 5)
	if err != nil {
		return "", err
	}
	dice := s.Random(k.name())
	err = s.While(ctx, nodes, func(ctx context.Context) error {
		for i := range k.times {
			if i%10 == 0 {
				s.Say("killed %d times", i)
			}
			if dice.IntN(5) > 0 { // else it may still be starting
				if err := s.Operator.Ready(ctx); err != nil {
					return err
				}
			}
			if err := program.Pause(ctx, time.Duration(dice.Int64N(int64(time.Second)))); err != nil {
				return err
			}
			s.Operator.Kill()
			if err := s.Operator.Start(ctx); err != nil {
				return err
			}
		}
		return s.Operator.Ready(ctx)
	})
	return fmt.Sprintf("%d kills", k.times), err
}
