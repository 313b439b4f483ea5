// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// launcher starts processes from one thread that lives as long as it does. The
// kernel's parent-death signal follows the thread that started a child, not the
// process, and Go ends idle threads at will: without this a child could be killed
// while its owner lives.
type launcher struct{ work chan func() }

func newLauncher() *launcher {
	l := &launcher{work: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for f := range l.work {
			f()
		}
	}()
	return l
}

func (l *launcher) do(f func() error) error {
	done := make(chan error, 1)
	l.work <- func() { done <- f() }
	return <-done
}

// close ends the thread, and with it, on Linux, whatever it started that still runs.
func (l *launcher) close() { close(l.work) }

// onOneThread runs f on a thread that nothing else uses while f runs.
func onOneThread(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return f()
}

// process is one running component.
type process struct {
	component Component
	log       string
	cmd       *exec.Cmd
	done      chan struct{} // closed when it has ended and err is set
	err       error
}

// spec says how to run a component.
type spec struct {
	component Component
	program   string
	args      []string
	dir, log  string
}

// start runs a component with its output appended to its log file. It gets a group
// of its own, so that Ctrl-C reaches the owner alone and the owner keeps the order,
// and a bare environment, so that no variable of the user's changes what it does.
func (l *launcher) start(s spec) (*process, error) {
	out, err := os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: opening its log: %w", s.component, err)
	}
	defer out.Close()
	cmd := exec.Command(s.program, s.args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + s.dir}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = ownGroup()
	p := &process{component: s.component, log: s.log, cmd: cmd, done: make(chan struct{})}
	if err := l.do(cmd.Start); err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.component, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// exited reports whether the process has ended.
func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) signal(s syscall.Signal) error {
	err := p.cmd.Process.Signal(s)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", s, p.component, err)
	}
	return nil
}

// stop asks the process to end and kills it if it takes longer than patience.
func (p *process) stop(patience time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	// A process that was stopped for a test sees nothing else until it continues.
	_ = p.signal(syscall.SIGCONT)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// tail returns the last n lines of a file, or says why it cannot.
func tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(string(bytes.TrimRight(data, "\n")), "\n")
	if len(all) > n {
		all = all[len(all)-n:]
	}
	return strings.Join(all, "\n")
}
