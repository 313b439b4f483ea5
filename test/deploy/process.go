// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// RunOptions say how the operator is run.
type RunOptions struct {
	// Program is the operator's, as Build made it.
	Program string
	// Log is where its output goes, a file that is appended to.
	Log string
	// Kubeconfig replaces that of the operator's own service account, if not empty.
	Kubeconfig string
	// Flags and Env are added to its own.
	Flags, Env []string
}

// Process is a running operator.
type Process struct {
	// Log is the file with its output.
	Log string

	cmd    *exec.Cmd
	health string
	ended  chan struct{}
	err    error
}

// Run starts the operator. It returns at once; see Ready.
func (i *Installation) Run(ctx context.Context, o RunOptions) (*Process, error) {
	if o.Kubeconfig == "" {
		path, err := i.Cluster.ServiceAccountKubeconfig(ctx, Namespace, ServiceAccount)
		if err != nil {
			return nil, err
		}
		o.Kubeconfig = path
	}
	health, err := FreePort()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(o.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the operator's log: %w", err)
	}
	defer log.Close()
	flags := append([]string{
		"--kubeconfig=" + o.Kubeconfig,
		fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", health),
		"--metrics-bind-address=0",
		fmt.Sprintf("--webhook-port=%d", i.WebhookPort),
	}, o.Flags...)
	p := &Process{Log: o.Log, cmd: exec.Command(o.Program, flags...), health: fmt.Sprintf("http://127.0.0.1:%d", health), ended: make(chan struct{})}
	p.cmd.Env = append([]string{"OPERATOR_NAMESPACE=" + Namespace, "TMPDIR=" + filepath.Dir(o.Log), "PATH=" + os.Getenv("PATH")}, o.Env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return p, p.start()
}

// start starts the process from a thread of its own that lives as long as the process: the kernel ends a
// child when the thread that made it ends.
func (p *Process) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("starting the operator: %w", err)
	}
	return nil
}

// Ready waits until the operator says that it is ready.
func (p *Process) Ready(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.ended:
			return false, fmt.Errorf("it ended: %w", errors.Join(p.err, errEnded))
		default:
		}
		code, _ := p.Probe(ctx, "/readyz")
		return code == http.StatusOK, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the operator, log %s: %w", p.Log, err)
	}
	return nil
}

var errEnded = errors.New("process ended")

// Probe asks one of the health endpoints and returns the status of the answer; 0 if there is none.
func (p *Process) Probe(ctx context.Context, path string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.health+path, nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// ExitCode returns the exit code of an ended process; -1 if a signal ended it.
func (p *Process) ExitCode() int { <-p.ended; return p.cmd.ProcessState.ExitCode() }

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends the process at once, as a crash would, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// Stop asks the process to end and waits until it has; after the limit it is killed, and that is an error.
func (p *Process) Stop(limit time.Duration) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
		return nil
	case <-time.After(limit):
		p.Kill()
		return fmt.Errorf("the operator did not end within %s of SIGTERM, log %s", limit, p.Log)
	}
}

// Usage returns what an ended process used, as the operating system tells it: a *syscall.Rusage on Unix.
func (p *Process) Usage() any { <-p.ended; return p.cmd.ProcessState.SysUsage() }
