// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"go.uber.org/goleak"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/nodemaint/nodemaint/lease"
	"github.com/nodemaint/nodemaint/maintenance"
	"github.com/nodemaint/nodemaint/test/faults/kit"
)

const (
	embeddedRounds = 3
	// embeddedHolder is who the engine in this process is for others.
	embeddedHolder = "soak"
)

// embedded maintains some nodes with an engine in this process, and looks whether a goroutine is left of it. Nothing
// else may be going on.
func (r *run) embedded(ctx context.Context, nodes []kit.Node) error {
	r.stage.Say("maintaining %d nodes in this process", len(nodes))
	before := goleak.IgnoreCurrent()
	config := r.stage.Cluster.RESTConfig()
	own, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	c, err := kubernetes.NewForConfigAndClient(config, own)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	engine := maintenance.New(c, maintenance.Options{Lease: lease.NewManager(c, embeddedHolder, lease.Options{})})
	for range embeddedRounds {
		for _, n := range nodes {
			if err := r.stage.Fill(ctx, n); err != nil {
				return err
			}
			if err := drain(ctx, engine, n.Name); err != nil {
				return fmt.Errorf("maintaining node %q in this process: %w", n.Name, err)
			}
		}
	}
	own.CloseIdleConnections()
	if err := goleak.Find(before); err != nil {
		return err
	}
	r.clean = true
	return nil
}

// drain takes a node out of service and gives it back.
func drain(ctx context.Context, engine *maintenance.Engine, node string) error {
	ctx, cancel := context.WithTimeout(ctx, kit.Patience)
	defer cancel()
	drained := false
	for state, err := range engine.Run(ctx, node) {
		if drained = err == nil && state.Phase == maintenance.Succeeded; drained {
			break
		}
	}
	if !drained {
		return context.Cause(ctx)
	}
	_, err := engine.Stop(ctx, node)
	return err
}
