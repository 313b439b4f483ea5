// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nodemaint/nodemaint/test/program"
)

// storm is no fault: only a great many objects, created and deleted at random.
type storm struct {
	objects int
	length  time.Duration
}

func (storm) name() string { return "storm" }
func (f storm) title() string {
	return fmt.Sprintf("%d objects are created and deleted at random for %s", f.objects, f.length)
}

func (f storm) run(ctx context.Context, s *stage) (string, error) {
	nodes, err := s.AddNodes(ctx, f.name(), f.objects, 2)
	if err != nil {
		return "", err
	}
	began := s.Finished.Load()
	err = s.While(ctx, nodes, func(ctx context.Context) error { return program.Pause(ctx, f.length) })
	return fmt.Sprintf("%d maintenances on %d nodes", s.Finished.Load()-began, f.objects), err
}
