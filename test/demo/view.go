// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// view shows a maintenance as it goes on.
type view interface {
	update(nm *v1beta1.NodeMaintenance)
	note(text string)
	close()
}

// newView returns a live view for a terminal, else one that prints a line for each change.
func newView(out io.Writer) view {
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return newLive(out)
	}
	return &lines{out: out}
}

// lines is the view for logs.
type lines struct {
	out  io.Writer
	last string
}

func (l *lines) update(nm *v1beta1.NodeMaintenance) {
	text := fmt.Sprintf("%-9s %3d%%  %s", nm.Status.Phase, nm.Status.DrainProgress, strings.Join(causes(nm), "\n"+strings.Repeat(" ", 30)))
	if nm.Status.Phase != "" && text != l.last {
		l.last = text
		l.note(text)
	}
}

func (l *lines) note(text string) {
	fmt.Fprintf(l.out, "%s  %s\n", time.Now().UTC().Format("15:04:05.000"), text)
}

func (l *lines) close() {}

// shownLines is how many lines the live view has below the bar: how many pods are left, and which.
const shownLines = 12

// live is the view for people: a bar, and below it the pods still to leave.
type live struct {
	bars *mpb.Progress
	rows []*mpb.Bar // the bar, then the lines

	mu    sync.Mutex
	phase string
	pods  []string
}

func newLive(out io.Writer) *live {
	v := &live{bars: mpb.New(mpb.WithOutput(out), mpb.WithWidth(60), mpb.WithAutoRefresh())}
	v.rows = append(v.rows, v.bars.AddBar(100,
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return v.title() })),
		mpb.AppendDecorators(decor.Percentage(decor.WCSyncSpace)),
	))
	for i := range shownLines {
		v.rows = append(v.rows, v.bars.New(0, mpb.NopStyle(),
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return v.line(i) }))))
	}
	return v
}

func (v *live) update(nm *v1beta1.NodeMaintenance) {
	v.mu.Lock()
	v.phase, v.pods = string(nm.Status.Phase), left(nm)
	v.mu.Unlock()
	v.rows[0].SetCurrent(int64(nm.Status.DrainProgress))
}

func (v *live) note(text string) {
	_, _ = v.bars.Write([]byte(text + "\n")) // above the bar; what cannot be shown is not missed
}

func (v *live) close() {
	for i, row := range v.rows {
		row.Abort(i > 0) // the bar stays, the lines go
	}
	v.bars.Wait()
}

func (v *live) title() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return fmt.Sprintf("%-9s ", v.phase)
}

// line returns the i-th line below the bar; the last one counts what has no room.
func (v *live) line(i int) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch more := len(v.pods) - shownLines; {
	case i >= len(v.pods):
		return " "
	case i == shownLines-1 && more > 0:
		return fmt.Sprintf("  and %d more", more+1)
	default:
		return "  " + v.pods[i]
	}
}

// causes are the lines of the Drained condition: how many pods are left, and what keeps which of them.
func causes(nm *v1beta1.NodeMaintenance) []string {
	c := meta.FindStatusCondition(nm.Status.Conditions, v1beta1.ConditionDrained)
	if c == nil {
		return nil
	}
	return strings.Split(c.Message, "\n")
}

// left adds to the causes the pods that they do not name because they only take their time.
func left(nm *v1beta1.NodeMaintenance) []string {
	out := causes(nm)
	named := strings.Join(out, "\n")
	for _, p := range nm.Status.PendingPodsRefs {
		if name := p.Namespace + "/" + p.Name; !strings.Contains(named, name+":") {
			out = append(out, name+": leaving")
		}
	}
	return out
}

func blocked(nm *v1beta1.NodeMaintenance) bool {
	c := meta.FindStatusCondition(nm.Status.Conditions, v1beta1.ConditionDrained)
	return c != nil && c.Reason == v1beta1.ReasonBlockedByBudget
}
