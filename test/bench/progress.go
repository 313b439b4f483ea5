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

// progress tells where the benchmark is: a bar for each workload on a terminal, else a line now and then.
type progress struct {
	out   *os.File
	pool  *mpb.Progress // nil if not on a terminal
	began time.Time
}

// quiet is the least time between two lines that count.
const quiet = 10 * time.Second

func newProgress(out *os.File) *progress {
	p := &progress{out: out, began: time.Now()}
	if width, _, err := term.GetSize(int(out.Fd())); err == nil && width > 0 {
		p.pool = mpb.New(mpb.WithOutput(out), mpb.WithWidth(20), mpb.WithRefreshRate(200*time.Millisecond))
	}
	return p
}

// of returns what tells where one workload is, which begins.
func (p *progress) of(w workload) *teller {
	t := &teller{progress: p, w: w}
	if p.pool != nil {
		t.bar = p.pool.AddBar(int64(w.kind.steps()),
			mpb.PrependDecorators(decor.CountersNoUnit("%d of %d"), decor.Elapsed(decor.ET_STYLE_MMSS, decor.WCSyncSpace)),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return t.line() })))
	}
	return t
}

func (p *progress) close() {
	if p.pool != nil {
		p.pool.Wait()
	}
}

// teller tells where one workload is.
type teller struct {
	*progress
	w   workload
	bar *mpb.Bar // nil if not on a terminal

	mu         sync.Mutex
	number     int // of the step
	name, text string
	printed    time.Time
}

// step says that the next step begins.
func (t *teller) step(name string) {
	t.mu.Lock()
	t.number++
	t.name, t.text = name, "beginning"
	done := t.number - 1
	t.mu.Unlock()
	if t.bar != nil {
		t.bar.SetCurrent(int64(done)) // not under the lock: the bar may be waiting for it to draw the line
	}
}

// end says that the workload is measured, or cannot be.
func (t *teller) end(err error) {
	if err != nil {
		t.say("%v", err)
	} else {
		t.say("done")
	}
	if t.bar != nil && err == nil {
		t.bar.SetCurrent(int64(t.w.kind.steps()))
	}
	if t.bar != nil {
		t.bar.Abort(false) // of one that is complete, nothing
	}
}

// say says what is being done.
func (t *teller) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = fmt.Sprintf(format, args...)
	t.print()
}

// count says how much of it is done.
func (t *teller) count(have, want int, things string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = fmt.Sprintf("%d of %d %s", have, want, things)
	if have == want || time.Since(t.printed) > quiet {
		t.print()
	}
}

func (t *teller) print() {
	if t.bar == nil {
		t.printed = time.Now()
		fmt.Fprintf(t.out, "%5s  %s\n", time.Since(t.began).Round(time.Second), t.where())
	}
}

func (t *teller) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.where()
}

// where is the workload, the step and what is being done.
func (t *teller) where() string {
	return fmt.Sprintf("%s %d/%d %s: %s", t.w.name, t.number, t.w.kind.steps(), t.name, t.text)
}
