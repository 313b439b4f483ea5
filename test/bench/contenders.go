// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// contender drains nodes in its own way.
type contender struct {
	name string
	user string // whose requests are counted
	// prepare brings up what must stand before; nil for nothing.
	prepare func(ctx context.Context, s *stage) error
	// begin starts the drain of all nodes; what it returns ends it and says what it used.
	begin func(ctx context.Context, s *stage, nodes []string) (running, error)
}

// peer says whether the contender is another way of draining, rather than ours or the limit.
func (c contender) peer() bool { return c.name == nameKubectl || c.name == nameLoop }

// limit says whether the contender is one of the limits.
func (c contender) limit() bool { return strings.HasPrefix(c.name, limitPrefix) }

// running is a contender at work.
type running interface {
	// wait waits until the contender says that all nodes are drained.
	wait(ctx context.Context) error
	// end ends the contender, done or not, and returns what it used.
	end() (usage, error)
}

// Names of the contenders in tables. Those of both limits begin alike.
const (
	nameOurs    = "nodemaint"
	nameKubectl = "kubectl drain"
	nameLoop    = "library loop"
	limitPrefix = "limit, "
)

// contenders returns all; program is the operator's.
func contenders(program string) []contender {
	return []contender{ours(program), kubectl(), libraryLoop(), limit64(), limitPerBudget()}
}

func ours(program string) contender {
	return contender{
		name: nameOurs, user: deploy.User,
		prepare: func(ctx context.Context, s *stage) error { return s.startOperator(ctx, program) },
		begin: func(ctx context.Context, s *stage, nodes []string) (running, error) {
			all, stop, err := s.successes(ctx, nodes)
			if err != nil {
				return nil, err
			}
			return operatorRun{all, stop, s.operator}, s.createAll(ctx, nodes)
		},
	}
}

func kubectl() contender {
	return contender{name: nameKubectl, user: peerUser, begin: func(ctx context.Context, s *stage, nodes []string) (running, error) {
		return s.commands(ctx, nodes, func(config, node string) []string {
			return []string{s.Cluster.KubectlPath, "drain", node, "--kubeconfig", config, "--ignore-daemonsets", "--delete-emptydir-data", "--force"}
		})
	}}
}

func libraryLoop() contender {
	return contender{name: nameLoop, user: peerUser, begin: peerCommand("loop")}
}

func limit64() contender {
	return contender{name: limitPrefix + "64 in flight", user: peerUser, begin: peerCommand("limit", "--in-flight=64")}
}

func limitPerBudget() contender {
	return contender{name: limitPrefix + "1 a budget", user: peerUser, begin: peerCommand("limit", "--per-budget")}
}

// peerCommand runs the peer for all nodes, in a process of its own.
func peerCommand(args ...string) func(context.Context, *stage, []string) (running, error) {
	return func(ctx context.Context, s *stage, nodes []string) (running, error) {
		return s.commands(ctx, []string{strings.Join(nodes, ",")}, func(config, nodes string) []string {
			return append([]string{s.peer, args[0], "--kubeconfig=" + config, "--nodes=" + nodes}, args[1:]...)
		})
	}
}

// startOperator runs the operator and waits until it is ready.
func (s *stage) startOperator(ctx context.Context, program string) error {
	var err error
	s.operator, err = s.Run(ctx, deploy.RunOptions{Program: program, Log: s.log("operator"), Flags: []string{"--enable-webhooks=false"}})
	if err != nil {
		return err
	}
	return s.operator.Ready(ctx)
}

// createAll creates a NodeMaintenance for each node, all at once.
func (s *stage) createAll(ctx context.Context, nodes []string) error {
	errs := make(chan error, len(nodes))
	for _, n := range nodes {
		go func() {
			errs <- s.Create(ctx, &v1beta1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: n}, Spec: v1beta1.NodeMaintenanceSpec{NodeName: n}})
		}()
	}
	var err error
	for range nodes {
		err = errors.Join(err, <-errs)
	}
	return err
}

// operatorRun is the operator at work; it is done when it has stored that every node is.
type operatorRun struct {
	*arrivals
	stop func()
	p    *deploy.Process
}

func (r operatorRun) end() (usage, error) {
	r.stop()
	used, err := memoryOf(r.p.PID())
	err = errors.Join(err, r.p.Stop(10*time.Second))
	used.cpu = cpuOf(r.p.Usage())
	return used, err
}

// commands runs a process for each argument, all at once.
func (s *stage) commands(ctx context.Context, each []string, command func(config, arg string) []string) (running, error) {
	config, err := s.Cluster.ServiceAccountKubeconfig(ctx, namespace, peer)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(s.log("peer"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	r := &commandRun{ended: make(chan error, len(each))}
	var pids []int
	for _, arg := range each {
		argv := command(config, arg)
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdout, cmd.Stderr = log, log
		cmd.Env = []string{"HOME=" + s.dir, "PATH=" + os.Getenv("PATH")}
		if err := cmd.Start(); err != nil {
			r.kill()
			return nil, err
		}
		r.cmds = append(r.cmds, cmd)
		r.all.Go(func() { r.ended <- r.await(cmd, log.Name()) })
		pids = append(pids, cmd.Process.Pid)
	}
	r.peaks = watchPeaks(pids)
	return r, nil
}

// commandRun is the processes of a peer, which end by themselves when they are done.
type commandRun struct {
	cmds  []*exec.Cmd
	all   sync.WaitGroup
	ended chan error // one for each process
	over  atomic.Bool
	peaks *peaks
}

// await waits for the end of a process. That it was killed is no error.
func (r *commandRun) await(c *exec.Cmd, log string) error {
	if err := c.Wait(); err != nil && !r.over.Load() {
		return fmt.Errorf("%s: %w; the end of its log: %s", strings.Join(c.Args[:2], " "), err, tail(log))
	}
	return nil
}

func (r *commandRun) wait(ctx context.Context) error {
	for range r.cmds {
		select {
		case err := <-r.ended:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (r *commandRun) end() (usage, error) {
	peak, err := r.peaks.sum(len(r.cmds))
	r.kill()
	used := usage{peak: peak}
	for _, c := range r.cmds {
		used.cpu += cpuOf(c.ProcessState.SysUsage())
	}
	return used, err
}

// kill ends what has not ended.
func (r *commandRun) kill() {
	r.over.Store(true)
	for _, c := range r.cmds {
		_ = c.Process.Kill() // it may have ended
	}
	r.all.Wait()
}

// tail returns the end of a log.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-500):])
}

// requests returns what the user has asked for since then.
func (s *stage) requests(user string, since time.Time) ([]cluster.AuditEvent, error) {
	return s.Cluster.ReadAudit(cluster.AuditFilter{User: user, Since: since})
}
