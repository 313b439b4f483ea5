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

// before is how long nodes are maintained before something happens to the connection.
const before = 3 * time.Second

// disturbed maintains nodes while something happens to the operator's connection, which is mended then.
func disturbed(ctx context.Context, s *stage, name string, disturb func(ctx context.Context, p *kit.Proxy) error) error {
	nodes, err := s.AddNodes(ctx, name, 10, 5)
	if err != nil {
		return err
	}
	p := s.Operator.Proxy
	return s.While(ctx, nodes, func(ctx context.Context) error {
		if err := program.Pause(ctx, before); err != nil {
			return err
		}
		return errors.Join(disturb(ctx, p), p.Pass())
	})
}

// cut takes the operator's connection away: once so that it is told, and once so that it is not.
type cut struct{ length time.Duration }

func (cut) name() string    { return "cut" }
func (f cut) title() string { return fmt.Sprintf("the operator's connection is cut for %s", f.length) }

func (f cut) run(ctx context.Context, s *stage) (string, error) {
	err := disturbed(ctx, s, f.name(), func(ctx context.Context, p *kit.Proxy) error {
		s.Say("refusing connections")
		p.Refuse()
		if err := program.Pause(ctx, f.length); err != nil {
			return err
		}
		if err := p.Pass(); err != nil {
			return err
		}
		if err := program.Pause(ctx, before); err != nil {
			return err
		}
		s.Say("swallowing all bytes")
		p.Silence()
		return program.Pause(ctx, f.length)
	})
	return fmt.Sprintf("%s refused, %s silent", f.length, f.length), err
}

// slow makes every call take longer.
type slow struct{ answer, length time.Duration }

func (slow) name() string    { return "slow" }
func (f slow) title() string { return fmt.Sprintf("every call of the operator takes %s", f.answer) }

func (f slow) run(ctx context.Context, s *stage) (string, error) {
	err := disturbed(ctx, s, f.name(), func(ctx context.Context, p *kit.Proxy) error {
		p.Delay(f.answer)
		return program.Pause(ctx, f.length)
	})
	return fmt.Sprintf("%s of it", f.length), err
}

// dropWatches cuts every connection over and over, and with them every watch.
type dropWatches struct {
	every time.Duration
	times int
}

func (dropWatches) name() string { return "watches" }
func (f dropWatches) title() string {
	return fmt.Sprintf("every watch of the operator breaks every %s", f.every)
}

func (f dropWatches) run(ctx context.Context, s *stage) (string, error) {
	cuts := 0
	err := disturbed(ctx, s, f.name(), func(ctx context.Context, p *kit.Proxy) error {
		for range f.times {
			cuts += p.Cut()
			if err := program.Pause(ctx, f.every); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && cuts < f.times {
		err = errNoConnection
	}
	return fmt.Sprintf("%d connections cut", cuts), err
}

var errNoConnection = errors.New("there was no connection to cut")
