// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Binaries are the paths of the programs that a cluster consists of, and of kubectl.
type Binaries struct {
	Etcd, APIServer, ControllerManager, Scheduler, Kwok, Kubectl string
}

// BuildOptions says how Build reports.
type BuildOptions struct {
	// Out gets the progress: a bar if it is a terminal, else a line for each part.
	// Nil means no progress.
	Out io.Writer
}

// Build makes the binaries, or finds those that an earlier Build made. They lie
// in the user's cache folder under a key of module versions, toolchain and flags.
// Only one process builds at a time; another waits for it. A first build takes
// minutes. An error says which part failed and where its log is.
func Build(ctx context.Context, o BuildOptions) (Binaries, error) {
	src, err := componentsDir(ctx)
	if err != nil {
		return Binaries{}, err
	}
	goMod, err := os.ReadFile(filepath.Join(src, "go.mod"))
	if err != nil {
		return Binaries{}, fmt.Errorf("reading versions of the Kubernetes binaries: %w", err)
	}
	tc, err := goToolchain(ctx, src)
	if err != nil {
		return Binaries{}, err
	}
	cache, err := cacheDir()
	if err != nil {
		return Binaries{}, err
	}
	b := build{src: src, dst: filepath.Join(cache, "bin", buildKey(goMod, tc, buildFlags())), targets: packages()}
	if err := b.run(ctx, newProgress(o.Out, len(b.targets))); err != nil {
		return Binaries{}, err
	}
	return binariesIn(b.dst), nil
}

// cacheDir is where binaries and the folders of running clusters lie.
func cacheDir() (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache folder: %w", err)
	}
	return filepath.Join(user, "nodemaint", "cluster"), nil
}

func binariesIn(dir string) Binaries {
	at := func(c Component) string { return filepath.Join(dir, string(c)) }
	return Binaries{
		Etcd: at(Etcd), APIServer: at(APIServer), ControllerManager: at(ControllerManager),
		Scheduler: at(Scheduler), Kwok: at(Kwok), Kubectl: at(kubectl),
	}
}

// path returns the program of a component.
func (b Binaries) path(c Component) string {
	return map[Component]string{
		Etcd: b.Etcd, APIServer: b.APIServer, ControllerManager: b.ControllerManager,
		Scheduler: b.Scheduler, Kwok: b.Kwok, kubectl: b.Kubectl,
	}[c]
}

// build makes targets from the module in src and puts them into dst.
type build struct {
	src, dst string
	targets  []target
}

func (b build) run(ctx context.Context, p progress) error {
	if len(b.missing()) == 0 {
		return nil
	}
	if err := os.MkdirAll(b.dst, 0o755); err != nil {
		return fmt.Errorf("making folder for the Kubernetes binaries: %w", err)
	}
	held, err := lock(ctx, filepath.Join(b.dst, ".lock"), p.waiting)
	if err != nil {
		return fmt.Errorf("building the Kubernetes binaries: %w", err)
	}
	defer held.unlock()
	defer p.close()
	for i, t := range b.targets {
		if b.has(t) {
			p.present(i+1, t.name)
			continue
		}
		if err := b.one(ctx, i+1, t, p); err != nil {
			return err
		}
	}
	return nil
}

func (b build) has(t target) bool {
	info, err := os.Stat(filepath.Join(b.dst, string(t.name)))
	return err == nil && info.Mode().IsRegular()
}

func (b build) missing() []target {
	var out []target
	for _, t := range b.targets {
		if !b.has(t) {
			out = append(out, t)
		}
	}
	return out
}

// one builds a target under a temporary name and then renames it, so that a
// binary in the cache is always whole.
func (b build) one(ctx context.Context, n int, t target, p progress) error {
	logPath := filepath.Join(b.dst, string(t.name)+".log")
	log, err := os.Create(logPath)
	if err != nil {
		return fmt.Errorf("building %s: creating its log: %w", t.name, err)
	}
	defer log.Close()
	tmp := filepath.Join(b.dst, "."+string(t.name)+".tmp")
	defer os.Remove(tmp)

	args := append([]string{"build", "-v"}, buildFlags()...)
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", tmp, t.pkg)...)
	cmd.Dir, cmd.Env = b.src, buildEnv()
	cmd.Stdout = log
	cmd.Stderr = io.MultiWriter(log, &lineCounter{count: p.compiled})
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = 5 * time.Second

	start := time.Now()
	p.begin(n, t.name)
	if err := onOneThread(cmd.Run); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("building %s: %w\nlog: %s, its last lines:\n%s", t.name, err, logPath, tail(logPath, 10))
	}
	if err := os.Rename(tmp, filepath.Join(b.dst, string(t.name))); err != nil {
		return fmt.Errorf("building %s: putting it into the cache: %w", t.name, err)
	}
	p.end(n, t.name, time.Since(start))
	return nil
}

// lineCounter reports how many whole lines were written to it: go build -v writes
// one for each package that it compiles.
type lineCounter struct {
	n     int
	count func(int)
}

// Write counts the lines of p.
func (l *lineCounter) Write(p []byte) (int, error) {
	for _, c := range p {
		if c == '\n' {
			l.n++
		}
	}
	l.count(l.n)
	return len(p), nil
}
