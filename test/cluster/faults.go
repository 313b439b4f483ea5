// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// StopComponent ends one part and waits for its end: SIGTERM, and SIGKILL after 5 s.
// A part that does not run is no error.
func (c *Cluster) StopComponent(part Component) error {
	p := c.part(part)
	if p == nil {
		return nil
	}
	return p.stop(5 * time.Second)
}

// StartComponent starts a part that has ended, with the ports, data and flags it
// had, and waits until it answers, a minute at most.
func (c *Cluster) StartComponent(ctx context.Context, part Component) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.StartTimeout)
	defer cancel()
	if err := c.launch(part); err != nil {
		return err
	}
	if err := c.awaitPart(ctx, part); err != nil {
		return fmt.Errorf("starting a part of cluster %s: %w", c.options.Name, err)
	}
	return c.writeState()
}

// RestartAPIServer ends the API server and starts it again on the same port.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	if err := c.StopComponent(APIServer); err != nil {
		return err
	}
	return c.StartComponent(ctx, APIServer)
}

// Signal sends a signal to a part, for instance SIGSTOP, SIGCONT or SIGKILL.
func (c *Cluster) Signal(part Component, s syscall.Signal) error {
	p := c.part(part)
	if p == nil {
		return fmt.Errorf("sending %s to %s: it does not run", s, part)
	}
	return p.signal(s)
}

// Exited is closed when the process that now runs the part has ended. It is nil
// for a part that was never started.
func (c *Cluster) Exited(part Component) <-chan struct{} {
	if p := c.part(part); p != nil {
		return p.done
	}
	return nil
}
