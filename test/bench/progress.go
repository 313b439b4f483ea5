// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// progress tells where the benchmark is: a bar on a terminal, else a line now and then.
type progress struct {
	out   *os.File
	pool  *mpb.Progress // nil if not on a terminal
	bar   *mpb.Bar
	total int // steps of all workloads

	mu             sync.Mutex
	w              workload
	passed, number int // steps of earlier workloads; step of this one
	name, text     string
	began, printed time.Time
}

// quiet is the least time between two lines that count.
const quiet = 10 * time.Second

func newProgress(out *os.File, all []workload) *progress {
	p := &progress{out: out, began: time.Now()}
	for _, w := range all {
		p.total += w.kind.steps()
	}
	if width, _, err := term.GetSize(int(out.Fd())); err == nil && width > 0 {
		p.pool = mpb.New(mpb.WithOutput(out), mpb.WithWidth(20), mpb.WithRefreshRate(200*time.Millisecond))
		p.bar = p.pool.AddBar(int64(p.total),
			mpb.PrependDecorators(decor.CountersNoUnit("%d of %d"), decor.Elapsed(decor.ET_STYLE_MMSS, decor.WCSyncSpace)),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.line() })))
	}
	return p
}

// workload says that the next steps are this workload's.
func (p *progress) workload(w workload) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w.kind != nil {
		p.passed += p.w.kind.steps()
	}
	p.w, p.number = w, 0
}

// step says that the workload's next step begins.
func (p *progress) step(name string) {
	p.mu.Lock()
	p.number++
	p.name, p.text = name, "beginning"
	done := p.passed + p.number - 1
	p.mu.Unlock()
	if p.bar != nil {
		p.bar.SetCurrent(int64(done)) // not under the lock: the bar may be waiting for it to draw the line
	}
}

// say says what is being done.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
	p.print()
}

// count says how much of it is done.
func (p *progress) count(have, want int, things string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf("%d of %d %s", have, want, things)
	if have == want || time.Since(p.printed) > quiet {
		p.print()
	}
}

func (p *progress) print() {
	if p.bar == nil {
		p.printed = time.Now()
		fmt.Fprintf(p.out, "%5s  %s\n", time.Since(p.began).Round(time.Second), p.where())
	}
}

func (p *progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w.kind == nil {
		return ""
	}
	return p.where()
}

// where is the workload, the step and what is being done.
func (p *progress) where() string {
	return fmt.Sprintf("%s %d/%d %s: %s", p.w.name, p.number, p.w.kind.steps(), p.name, p.text)
}

func (p *progress) close() {
	if p.bar != nil {
		p.bar.Abort(false)
		p.pool.Wait()
	}
}
