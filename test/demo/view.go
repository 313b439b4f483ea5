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
	text := fmt.Sprintf("%-9s %3d%%  %s", nm.Status.Phase, nm.Status.DrainProgress, strings.Join(left(nm), "; "))
	if nm.Status.Phase != "" && text != l.last {
		l.last = text
		l.note(text)
	}
}

func (l *lines) note(text string) {
	fmt.Fprintf(l.out, "%s  %s\n", time.Now().UTC().Format("15:04:05.000"), text)
}

func (l *lines) close() {}

// live is the view for people: a bar, and below it the pods still to leave.
type live struct {
	bars *mpb.Progress
	bar  *mpb.Bar

	mu    sync.Mutex
	phase string
	pods  []string
}

func newLive(out io.Writer) *live {
	v := &live{bars: mpb.New(mpb.WithOutput(out), mpb.WithWidth(48), mpb.WithAutoRefresh())}
	v.bar = v.bars.AddBar(100,
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return v.text() })),
		mpb.AppendDecorators(decor.Percentage(decor.WCSyncSpace)),
		mpb.BarExtender(mpb.BarFillerFunc(func(w io.Writer, _ decor.Statistics) error {
			_, err := io.WriteString(w, v.below())
			return err
		}), false),
	)
	return v
}

func (v *live) update(nm *v1beta1.NodeMaintenance) {
	v.mu.Lock()
	v.phase, v.pods = string(nm.Status.Phase), left(nm)
	v.mu.Unlock()
	v.bar.SetCurrent(int64(nm.Status.DrainProgress))
}

func (v *live) note(text string) {
	_, _ = v.bars.Write([]byte(text + "\n")) // above the bar; what cannot be shown is not missed
}

func (v *live) close() {
	v.bar.Abort(false)
	v.bars.Wait()
}

func (v *live) text() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return fmt.Sprintf("%-9s ", v.phase)
}

func (v *live) below() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b strings.Builder
	for _, p := range v.pods {
		b.WriteString("  " + p + "\n")
	}
	return b.String()
}

// left says which pods have yet to leave and what keeps them: the message of the Drained condition, and the
// pods that it does not name because they only take their time.
func left(nm *v1beta1.NodeMaintenance) []string {
	c := meta.FindStatusCondition(nm.Status.Conditions, v1beta1.ConditionDrained)
	if c == nil {
		return nil
	}
	out := strings.Split(c.Message, "\n")
	for _, p := range nm.Status.PendingPodsRefs {
		if name := p.Namespace + "/" + p.Name; !strings.Contains(c.Message, name+":") {
			out = append(out, name+": leaving")
		}
	}
	return out
}

func blocked(nm *v1beta1.NodeMaintenance) bool {
	c := meta.FindStatusCondition(nm.Status.Conditions, v1beta1.ConditionDrained)
	return c != nil && c.Reason == v1beta1.ReasonBlockedByBudget
}
