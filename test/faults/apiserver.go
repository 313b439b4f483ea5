// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/program"
)

// restartAPIServer ends the API server and starts it again.
type restartAPIServer struct{ times int }

func (restartAPIServer) name() string { return "apiserver" }
func (f restartAPIServer) title() string {
	return fmt.Sprintf("the API server is restarted %d times", f.times)
}

func (f restartAPIServer) run(ctx context.Context, s *stage) (string, error) {
	return fmt.Sprintf("%d restarts", f.times), restart(ctx, s, f.name(), cluster.APIServer, f.times)
}

// restartEtcd does the same to etcd.
type restartEtcd struct{ times int }

func (restartEtcd) name() string    { return "etcd" }
func (f restartEtcd) title() string { return fmt.Sprintf("etcd is restarted %d times", f.times) }

func (f restartEtcd) run(ctx context.Context, s *stage) (string, error) {
	return fmt.Sprintf("%d restarts", f.times), restart(ctx, s, f.name(), cluster.Etcd, f.times)
}

// away is how long a part is away, and how long it is there again before it goes once more.
const away = 3 * time.Second

// restart ends a part and starts it again while nodes are maintained.
func restart(ctx context.Context, s *stage, name string, part cluster.Component, times int) error {
	nodes, err := s.AddNodes(ctx, name, 10, 5)
	if err != nil {
		return err
	}
	return s.While(ctx, nodes, func(ctx context.Context) error {
		for range times {
			if err := program.Pause(ctx, away); err != nil {
				return err
			}
			s.Say("ending %s", part)
			if err := s.Cluster.StopComponent(part); err != nil {
				return err
			}
			if err := program.Pause(ctx, away); err != nil {
				return err
			}
			s.Say("starting %s", part)
			if err := s.Cluster.StartComponent(ctx, part); err != nil {
				return err
			}
		}
		return program.Pause(ctx, away)
	})
}
