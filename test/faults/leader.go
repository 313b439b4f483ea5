// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
	"github.com/nodemaint/nodemaint/test/faults/kit"
	"github.com/nodemaint/nodemaint/test/invariant"
	"github.com/nodemaint/nodemaint/test/program"
)

// leaderLease is the lease by which replicas elect a leader; it is good for leadership after its last renewal.
const (
	leaderLease = "135b1886.medik8s.io"
	leadership  = 15 * time.Second
)

// killLeader ends the leader of two by SIGKILL.
type killLeader struct{}

func (killLeader) name() string  { return "kill-leader" }
func (killLeader) title() string { return "of two operators the leader is killed" }

func (f killLeader) run(ctx context.Context, s *stage) (string, error) {
	err := pair(ctx, s, f.name(), func(ctx context.Context, leader, other *kit.Operator) error {
		leader.Kill()
		s.Say("killed; the other leads once the lease is over")
		return s.Until(ctx, "the other to lead", leads(other))
	})
	return "a new leader", err
}

// freezeLeader stops the leader of two past its lease, and wakes it when the other has led for a while.
type freezeLeader struct{}

func (freezeLeader) name() string { return "freeze-leader" }
func (freezeLeader) title() string {
	return "of two operators the leader is frozen past its lease, and woken"
}

func (f freezeLeader) run(ctx context.Context, s *stage) (string, error) {
	err := pair(ctx, s, f.name(), func(ctx context.Context, leader, other *kit.Operator) error {
		if err := leader.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		s.Say("frozen; the other leads once the lease is over")
		if err := s.Until(ctx, "the other to lead", leads(other)); err != nil {
			return err
		}
		if err := program.Pause(ctx, leadership/3); err != nil {
			return err
		}
		s.Say("waking it: it must not act, and end")
		if err := leader.Signal(syscall.SIGCONT); err != nil {
			return err
		}
		return s.Until(ctx, "the one that was frozen to end", func(context.Context) error {
			if leader.Running() {
				return errStillThere
			}
			return nil
		})
	})
	return "a new leader, and the old one ended without a write", err
}

var errStillThere = errors.New("it still runs")

// pair lets two operators elect a leader, and something happen to it while nodes are maintained. Then it looks
// whether anybody acted who did not lead, and has the usual operator back.
func pair(ctx context.Context, s *stage, name string, happen func(ctx context.Context, leader, other *kit.Operator) error) error {
	s.Operator.Kill()
	began := time.Now()
	second, err := deploy.FreePort()
	if err != nil {
		return err
	}
	a, err := s.NewOperator(ctx, name+"-a", "--leader-elect")
	if err != nil {
		return err
	}
	b, err := s.NewOperator(ctx, name+"-b", "--leader-elect", "--webhook-port="+strconv.Itoa(second))
	if err != nil {
		return err
	}
	defer end(a, b)
	// The one whose webhook is asked must outlive the other: it leads second.
	for _, o := range []*kit.Operator{b, a} {
		if err := o.Run(ctx); err != nil {
			return err
		}
		if err := s.Until(ctx, "the first to lead", leads(b)); err != nil {
			return err
		}
	}
	nodes, err := s.AddNodes(ctx, name, 10, 5)
	if err != nil {
		return err
	}
	err = s.While(ctx, nodes, func(ctx context.Context) error {
		if err := program.Pause(ctx, before); err != nil {
			return err
		}
		if err := happen(ctx, b, a); err != nil {
			return err
		}
		return program.Pause(ctx, before)
	})
	if err != nil {
		return err
	}
	if err := errors.Join(s.Rest(ctx), onlyLeaders(s, began)); err != nil {
		return fmt.Errorf("while the other leads: %w", err)
	}
	end(a, b)
	return s.Operator.Run(ctx)
}

func end(all ...*kit.Operator) {
	for _, o := range all {
		if o.Running() {
			_ = o.Stop(5 * time.Second) // so that it lets the leadership go; it is killed if it does not end
		}
	}
}

// leads returns an error as long as a replica does not say in its log that it leads.
func leads(o *kit.Operator) func(context.Context) error {
	return func(context.Context) error {
		said, err := o.Says("uccessfully acquired lease")
		if err == nil && !said {
			err = errNoLeader
		}
		return err
	}
}

var errNoLeader = errors.New("it does not lead")

// onlyLeaders returns an error if a replica touched a pod or a node while another led.
func onlyLeaders(s *stage, since time.Time) error {
	log, err := s.Cluster.ReadAudit(cluster.AuditFilter{User: deploy.User, Since: since})
	if err != nil {
		return err
	}
	credentials := map[string]bool{}
	for _, e := range log {
		credentials[e.Credential] = true
	}
	if len(credentials) < 2 || credentials[""] {
		return fmt.Errorf("%w: %v", errNobody, credentials)
	}
	var errs []error
	for _, b := range invariant.OneLeader(log, deploy.User, deploy.Namespace, leaderLease) {
		errs = append(errs, errors.New(b.String()))
	}
	return errors.Join(errs...)
}

var errNobody = errors.New("the audit log does not tell the replicas apart")
