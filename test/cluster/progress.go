// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// progress is told how a build goes on.
type progress interface {
	waiting()
	present(n int, part Component)
	begin(n int, part Component)
	compiled(packages int)
	end(n int, part Component, took time.Duration)
	close()
}

// newProgress picks the bar for a terminal, lines for anything else, silence for nil.
func newProgress(out io.Writer, parts int) progress {
	if out == nil {
		return &lines{out: io.Discard, parts: parts}
	}
	if f, ok := out.(*os.File); ok && drawable(f) {
		return newBar(f, parts)
	}
	return &lines{out: out, parts: parts}
}

// drawable reports whether f is a terminal with room for a bar. A pseudo-terminal
// that nobody has given a size, as some CI systems have it, would show nothing.
func drawable(f *os.File) bool {
	width, _, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0
}

const firstBuild = "Building the Kubernetes binaries from their Go modules. " +
	"The first time this takes about 10 minutes on 2 cores; afterwards they are in the cache."

// lines writes a line when a part begins, one every half minute, and one when it ends.
type lines struct {
	out      io.Writer
	parts    int
	said     bool
	packages atomic.Int64
	stop     chan struct{}
}

func (l *lines) waiting() {
	fmt.Fprintln(l.out, "Another process builds the Kubernetes binaries; waiting for it.")
}

func (l *lines) present(n int, part Component) {
	fmt.Fprintf(l.out, "[%d/%d] %s: in the cache\n", n, l.parts, part)
}

func (l *lines) begin(n int, part Component) {
	if !l.said {
		fmt.Fprintln(l.out, firstBuild)
		l.said = true
	}
	fmt.Fprintf(l.out, "[%d/%d] %s: building\n", n, l.parts, part)
	l.packages.Store(0)
	l.stop = make(chan struct{})
	go l.remind(n, part, l.stop)
}

func (l *lines) remind(n int, part Component, stop <-chan struct{}) {
	start := time.Now()
	ticker := time.NewTicker(30 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			fmt.Fprintf(l.out, "[%d/%d] %s: still building after %s, %d packages compiled\n",
				n, l.parts, part, time.Since(start).Round(time.Second), l.packages.Load())
		}
	}
}

func (l *lines) compiled(packages int) { l.packages.Store(int64(packages)) }

func (l *lines) end(n int, part Component, took time.Duration) {
	l.close()
	fmt.Fprintf(l.out, "[%d/%d] %s: built in %s\n", n, l.parts, part, took.Round(100*time.Millisecond))
}

func (l *lines) close() {
	if l.stop != nil {
		close(l.stop)
		l.stop = nil
	}
}

// bar draws one bar over all parts, with the part at work and the time so far.
type bar struct {
	out      io.Writer
	pool     *mpb.Progress
	bar      *mpb.Bar
	parts    int
	part     atomic.Value
	packages atomic.Int64
}

func newBar(out io.Writer, parts int) *bar {
	return &bar{out: out, parts: parts}
}

// show starts drawing with the first part, so that a full cache draws nothing.
func (b *bar) show() {
	if b.pool != nil {
		return
	}
	fmt.Fprintln(b.out, firstBuild)
	b.part.Store("")
	b.pool = mpb.New(mpb.WithOutput(b.out), mpb.WithWidth(30), mpb.WithRefreshRate(200*time.Millisecond))
	b.bar = b.pool.AddBar(int64(b.parts),
		mpb.PrependDecorators(decor.CountersNoUnit("%d of %d"), decor.Elapsed(decor.ET_STYLE_MMSS, decor.WCSyncSpace)),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
			return fmt.Sprintf("%s, %d packages compiled", b.part.Load(), b.packages.Load())
		})),
	)
}

func (b *bar) waiting() {
	fmt.Fprintln(b.out, "Another process builds the Kubernetes binaries; waiting for it.")
}

func (b *bar) present(int, Component) {
	if b.bar != nil {
		b.bar.Increment()
	}
}

func (b *bar) begin(n int, part Component) {
	b.show()
	b.bar.SetCurrent(int64(n - 1))
	b.packages.Store(0)
	b.part.Store(string(part))
}

func (b *bar) compiled(packages int) { b.packages.Store(int64(packages)) }

func (b *bar) end(n int, _ Component, _ time.Duration) { b.bar.SetCurrent(int64(n)) }

func (b *bar) close() {
	if b.pool != nil {
		b.bar.Abort(false)
		b.pool.Wait()
	}
}
