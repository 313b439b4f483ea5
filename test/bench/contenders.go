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
	"syscall"
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

// running is a contender at work.
type running interface {
	// end ends the contender, if it has not ended by itself, and returns what it used.
	end() (usage, error)
}

// usage is what the processes of a contender used.
type usage struct {
	peak int64 // bytes; of several processes, the sum of their peaks
	cpu  time.Duration
}

func ours(program string) contender {
	return contender{
		name: "nodemaint", user: deploy.User,
		prepare: func(ctx context.Context, s *stage) (err error) {
			s.operator, err = s.startOperator(ctx, program)
			return err
		},
		begin: func(ctx context.Context, s *stage, nodes []string) (running, error) {
			return operatorRun{s.operator}, s.createAll(ctx, nodes)
		},
	}
}

func kubectl() contender {
	return contender{name: "kubectl drain", user: peerUser, begin: func(ctx context.Context, s *stage, nodes []string) (running, error) {
		return s.commands(ctx, nodes, func(config, node string) []string {
			return []string{s.Cluster.KubectlPath, "drain", node, "--kubeconfig", config, "--ignore-daemonsets", "--delete-emptydir-data", "--force"}
		})
	}}
}

func libraryLoop() contender {
	return contender{name: "library loop", user: peerUser, begin: peerCommand("loop")}
}

func limit64() contender {
	return contender{name: "limit, 64 in flight", user: peerUser, begin: peerCommand("limit", "--in-flight=64")}
}

func limitPerBudget() contender {
	return contender{name: "limit, 1 a budget", user: peerUser, begin: peerCommand("limit", "--per-budget")}
}

// peerCommand runs this program as a peer, in a process of its own.
func peerCommand(args ...string) func(context.Context, *stage, []string) (running, error) {
	return func(ctx context.Context, s *stage, nodes []string) (running, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return s.commands(ctx, []string{strings.Join(nodes, ",")}, func(config, nodes string) []string {
			return append([]string{self, "peer"}, append(args, "--kubeconfig="+config, "--nodes="+nodes)...)
		})
	}
}

// startOperator runs the operator and waits until it is ready.
func (s *stage) startOperator(ctx context.Context, program string) (*deploy.Process, error) {
	p, err := s.Run(ctx, deploy.RunOptions{Program: program, Log: s.log("operator"), Flags: []string{"--enable-webhooks=false"}})
	if err != nil {
		return nil, err
	}
	return p, p.Ready(ctx)
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

type operatorRun struct{ p *deploy.Process }

func (r operatorRun) end() (usage, error) {
	err := r.p.Stop(10 * time.Second)
	return usageOf(r.p.Usage()), err
}

// commands runs a process for each argument, all at once.
func (s *stage) commands(ctx context.Context, each []string, command func(config, arg string) []string) (running, error) {
	config, err := s.Cluster.ServiceAccountKubeconfig(ctx, namespace, peer)
	if err != nil {
		return nil, err
	}
	r := &commandRun{}
	log, err := os.OpenFile(s.log("peer"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	for _, arg := range each {
		argv := command(config, arg)
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdout, cmd.Stderr = log, log
		cmd.Env = []string{"HOME=" + s.dir, "PATH=" + os.Getenv("PATH")}
		if err := cmd.Start(); err != nil {
			return nil, errors.Join(err, r.kill())
		}
		r.cmds = append(r.cmds, cmd)
	}
	return r, nil
}

type commandRun struct{ cmds []*exec.Cmd }

func (r *commandRun) kill() error {
	for _, c := range r.cmds {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()
	}
	return nil
}

// end waits for the processes: a peer ends by itself when its nodes are drained.
func (r *commandRun) end() (usage, error) {
	var mu sync.Mutex
	var total usage
	var errs error
	var all sync.WaitGroup
	for _, c := range r.cmds {
		all.Go(func() {
			err := waitFor(c, time.Minute)
			mu.Lock()
			defer mu.Unlock()
			errs = errors.Join(errs, err)
			u := usageOf(c.ProcessState.SysUsage())
			total.peak += u.peak
			total.cpu += u.cpu
		})
	}
	all.Wait()
	return total, errs
}

// waitFor waits for the end of a process, which it brings about when the limit is over.
func waitFor(c *exec.Cmd, limit time.Duration) error {
	timer := time.AfterFunc(limit, func() { _ = c.Process.Signal(syscall.SIGKILL) })
	defer timer.Stop()
	if err := c.Wait(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(c.Args[:2], " "), err)
	}
	return nil
}

func usageOf(sys any) usage {
	ru, ok := sys.(*syscall.Rusage)
	if !ok {
		return usage{}
	}
	return usage{peak: ru.Maxrss * 1024, cpu: time.Duration(ru.Utime.Nano() + ru.Stime.Nano())}
}

// requests returns how many requests the user has made since then, by what they were for.
func (s *stage) requests(user string, since time.Time) ([]cluster.AuditEvent, error) {
	return s.Cluster.ReadAudit(cluster.AuditFilter{User: user, Since: since})
}
