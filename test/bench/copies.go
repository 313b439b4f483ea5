// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
	"github.com/nodemaint/nodemaint/test/program"
)

// original is a cluster with a load that has come to rest and was stopped. Each contender begins with a copy of it:
// with the very same pods on the same nodes, and in a fraction of the time that making them takes.
type original struct {
	data  string   // etcd's
	nodes []string // to be drained
}

// original makes it.
func (b *bench) original(ctx context.Context, l load) (original, error) {
	dir, err := os.MkdirTemp(b.dir, "original-")
	if err != nil {
		return original{}, err
	}
	s, err := b.setUpWith(ctx, cluster.Options{Dir: dir})
	if err != nil {
		return original{}, err
	}
	defer s.close()
	if err := s.populate(ctx, l); err != nil {
		return original{}, err
	}
	if err := s.rest(ctx); err != nil {
		return original{}, err
	}
	return original{s.Cluster.DataDir(), s.nodes}, s.Cluster.Stop()
}

// copy brings a copy of the original up.
func (b *bench) copy(ctx context.Context, of original) (*stage, error) {
	s, err := b.bringUp(ctx, cluster.Options{Data: of.data}, deploy.Adopt)
	if err != nil {
		return nil, err
	}
	s.nodes = of.nodes
	err = s.Cluster.AwaitNodes(ctx)
	if err == nil {
		err = s.rest(ctx)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// A cluster is at rest when it has used less than half a core in each of two seconds.
const (
	restLook  = time.Second
	restMost  = restLook / 2
	restLooks = 2
	restLimit = 2 * time.Minute
)

// rest waits until the cluster is at rest: a contender should not have to wait for what others began.
func (s *stage) rest(ctx context.Context) error {
	s.tell.say("waiting for the cluster to come to rest")
	ctx, cancel := context.WithTimeoutCause(ctx, restLimit, fmt.Errorf("the cluster did not come to rest in %s", restLimit))
	defer cancel()
	before, err := s.clusterCPU()
	for calm := 0; err == nil && calm < restLooks; {
		if err := program.Pause(ctx, restLook); err != nil {
			return err
		}
		var now clusterCPU
		if now, err = s.clusterCPU(); err != nil {
			break
		}
		calm++
		if now.since(before).sum() > restMost {
			calm = 0
		}
		before = now
	}
	return err
}
