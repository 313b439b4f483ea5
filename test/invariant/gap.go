// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"slices"
	"time"

	"github.com/nodemaint/nodemaint/test/cluster"
)

// Gap is a time in which a node is still held for an object that is there no more, as nobody can prevent: the API
// server removes an object at once that has no finalizer when the deletion comes in, also if it gets one before
// the deletion ends.
type Gap struct {
	Node     string
	From, To time.Time
}

// longestGap is how long the operator may take to see that an object is gone, and to give its node back.
const longestGap = 20 * time.Second

// Gaps returns them from the audit log. Every NodeMaintenance must be named like its node. A gap that lasts too
// long is none.
func Gaps(log []cluster.AuditEvent, user string) []Gap {
	var out []Gap
	objects, open := map[string]*crossing{}, map[string]time.Time{}
	end := func(node string, at time.Time) {
		if from, ok := open[node]; ok && at.Sub(from) <= longestGap {
			out = append(out, Gap{node, from, at})
		}
		delete(open, node)
	}
	for _, e := range inOrder(log) {
		switch {
		case !happened(e):
		case e.Resource == "nodemaintenances" && e.Subresource == "":
			c := objects[e.Name]
			if c == nil || e.Verb == "create" {
				c = &crossing{inherits: !open[e.Name].IsZero()}
				objects[e.Name] = c
			}
			c.see(e, user)
			if c.crossed() || c.passed() {
				open[e.Name] = c.deleted.Time
			}
			if e.Verb == "create" {
				end(e.Name, e.Answered)
			}
		case e.Resource == "leases" && e.Verb == "delete" && e.User == user:
			if node, ok := cutLease(e); ok {
				end(node, e.Answered)
			}
		}
	}
	return out
}

// crossing is the deletion of an object, and the write that puts the finalizer on it: the first one of ours.
type crossing struct {
	inherits         bool // the node was held for one before, which was there no more
	adopted, deleted *cluster.AuditEvent
}

// passed says whether it went without a word, before it took over a node that was held for the one before.
func (c *crossing) passed() bool { return c.inherits && c.adopted == nil && c.deleted != nil }

func (c *crossing) see(e cluster.AuditEvent, user string) {
	switch {
	case e.Verb == "patch" && e.User == user && c.adopted == nil:
		c.adopted = &e
	case e.Verb == "delete" && c.deleted == nil:
		c.deleted = &e
	}
}

// crossed says whether one came in before the other was answered.
func (c *crossing) crossed() bool {
	return c.adopted != nil && c.deleted != nil &&
		c.adopted.Time.Before(c.deleted.Answered) && c.deleted.Time.Before(c.adopted.Answered)
}

// WithoutGaps returns those of the breaches that were seen between from and to and that no gap explains.
func WithoutGaps(all []Breach, gaps []Gap, from, to time.Time) []Breach {
	var out []Breach
	for _, b := range all {
		if b.Rule != ruleGivenBack || !explained(b.Object, gaps, from, to) {
			out = append(out, b)
		}
	}
	return out
}

// WithoutUnseen returns those of the breaches that are not of an object which has begun in a gap: if its operator ends
// too, the next one knows its node, by the lease, but not whose end it would have to tell.
func WithoutUnseen(all []Breach, gaps []Gap) []Breach {
	var out []Breach
	for _, b := range all {
		second := b.begun.Add(time.Second) // that is how precise an event is
		if b.Rule != ruleToldEnd || !explained(b.node, gaps, b.begun, second) {
			out = append(out, b)
		}
	}
	return out
}

// NotOfEnds returns the breaches that WithoutUnseen leaves in any case.
func NotOfEnds(all []Breach) []Breach {
	return slices.DeleteFunc(slices.Clone(all), func(b Breach) bool { return b.Rule == ruleToldEnd })
}

// explained says whether a gap of the node overlaps the time between from and to.
func explained(node string, gaps []Gap, from, to time.Time) bool {
	for _, g := range gaps {
		if g.Node == node && g.From.Before(to) && from.Before(g.To) {
			return true
		}
	}
	return false
}
