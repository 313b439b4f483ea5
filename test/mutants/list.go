// SPDX-License-Identifier: Apache-2.0

package main

// mutants are bugs that would break what docs/reliability.md promises.
var mutants = []mutant{
	{
		bug: "evict whatever has the pod's name", file: "drainer/post.go", tests: "./drainer",
		was: `p := &metav1.Preconditions{UID: &pod.UID}`,
		is:  `p := &metav1.Preconditions{}`,
	},
	{
		bug: "evict pods that are terminating", file: "drainer/due.go", tests: "./drainer",
		was: `j.fate != leaves || j.pod.DeletionTimestamp != nil || !a.waits() || m.braked`,
		is:  `j.fate != leaves || !a.waits() || m.braked`,
	},
	{
		bug: "delete a pod that its budget keeps", file: "drainer/post.go", tests: "./drainer",
		was: `(d.opts.DeleteAfter > 0 && d.opts.Clock.Since(asked) >= d.opts.DeleteAfter)`,
		is:  `d.opts.Clock.Since(asked) >= d.opts.DeleteAfter`,
	},
	{
		bug: "count a pod as gone that a copy does not show yet", file: "drainer/launch.go", tests: "./drainer",
		was: `return pod, true, answer{}`,
		is:  `return pod, false, answer{kind: gone}`,
	},
	{
		bug: "ask for more pods than the budget lets go", file: "drainer/lanes.go", tests: "./drainer",
		was: `return at.allows(now) || now.Sub(at.asked) >= RetryDelay`,
		is:  `return true`,
	},
	{
		bug: "let it wait as if others were to leave", file: "drainer/news.go", tests: "./drainer",
		was: `return m != nil && d.view(node) == v && m.someLeave(v.pods.Items())`,
		is:  `return true`,
	},
	{
		bug: "mark the node without a record", file: "maintenance/hold.go", tests: "./maintenance",
		was: `c.annotations = map[string]*string{RecordAnnotation: ptr.To(s.record.encode())}`,
	},
	{
		bug: "believe an old copy of the node", file: "maintenance/hold.go", tests: "./maintenance",
		was: `if n.copied && !e.trusts(n.Node, prior) {`,
		is:  `if false {`,
	},
	{
		bug: "wait for a Start before a Stop", file: "maintenance/turns.go", tests: "./maintenance",
		was: `n.cancel(ErrStopped)`,
		is:  `_ = n.cancel`,
	},
	{
		bug: "say nothing of a pass whose time was over", file: "maintenance/start.go", tests: "./maintenance",
		was: `errors.Is(ctx.Err(), context.DeadlineExceeded)`,
		is:  `errors.Is(context.Cause(ctx), context.DeadlineExceeded)`,
	},
	{
		bug: "act on a record that names no holder", file: "maintenance/record.go", tests: "./maintenance",
		was: `r.V != recordVersion || r.Holder == "" ||`,
		is:  `r.V != recordVersion ||`,
	},
	{
		bug: "release the lease before the node is given back", file: "maintenance/stop.go", tests: "./maintenance",
		was: `	restored, err := e.restore(ctx, n)
	if err != nil {
		return restored, fmt.Errorf("stopping maintenance: %w", err)
	}
	if err := e.opts.Lease.Release(ctx, node); err != nil {
		return restored, fmt.Errorf("stopping maintenance: %w", err)
	}
`,
		is: `	if err := e.opts.Lease.Release(ctx, node); err != nil {
		return Restored{}, fmt.Errorf("stopping maintenance: %w", err)
	}
	restored, err := e.restore(ctx, n)
	if err != nil {
		return restored, fmt.Errorf("stopping maintenance: %w", err)
	}
`,
	},
	{
		bug: "give the node back a second time", file: "maintenance/stop.go", tests: "./maintenance",
		was: `	c := change{annotations: map[string]*string{RecordAnnotation: nil}}
	done := Restored{Changed: true}
`,
		is: `	c := change{}
	done := Restored{Changed: true}
`,
	},
	{
		bug: "undo a cordon that was there before", file: "maintenance/stop.go", tests: "./maintenance",
		was: `if n.Spec.Unschedulable && !r.Unschedulable {`,
		is:  `if n.Spec.Unschedulable {`,
	},
	{
		bug: "go on with a maintenance that was given up", file: "maintenance/start.go", tests: "./maintenance",
		was: `	if prior.Done() {
		return prior, nil
	}
`,
	},
	{
		bug: "never renew the lease", file: "lease/decide.go", tests: "./lease",
		was: `now.Before(renewAt(l)) && as(l, want)`,
		is:  `as(l, want)`,
	},
	{
		bug: "take a lease from its holder", file: "lease/decide.go", tests: "./lease",
		was: `	default:
		return wait
`,
		is: `	default:
		return take
`,
	},
	{
		bug: "count a conflict as a failure of the lease", file: "maintenance/claim.go", tests: "./maintenance",
		was: `case errors.As(err, &refused) && refused.Lapsed:`,
		is:  `case errors.As(err, &refused) && refused.Lapsed, apierrors.IsConflict(err):`,
	},
	{
		bug: "write taints over another's (package taint)", file: "taint/apply.go", tests: "./taint",
		was: `"metadata": map[string]any{"resourceVersion": resourceVersion},`,
	},
	{
		bug: "write taints over another's (package maintenance)", file: "maintenance/patch.go", tests: "./maintenance",
		was: `meta := map[string]any{"resourceVersion": resourceVersion}`,
		is:  `meta := map[string]any{}`,
	},
	{
		bug: "report 100 with a pod left", file: "maintenance/progress.go", tests: "./maintenance",
		was: `case p.Pending <= 0:`,
		is:  `case p.Pending <= 1:`,
	},
	{
		bug: "let the object go before its node is given back", file: "operator/giveback.go", tests: "./operator",
		was: `if err != nil || handedOver {`,
		is:  `if err != nil || !handedOver {`,
	},
	{
		bug: "leave a node to an object before its first pass", file: "operator/leftovers.go", tests: "./operator",
		was: `if len(wanted) > 0 {`,
		is:  `if len(wanted) > 1 {`,
	},
	{
		bug: "believe a cache that was cut off", file: "operator/reconciler.go", tests: "./operator",
		was: `seen := r.watches.of(nm.Name) != nil && r.watches.resting(nm.Name) == nil`,
		is:  `seen := r.watches.of(nm.Name) != nil`,
	},
	{
		bug: "let a delete wait for its object's pass", file: "operator/passes.go", tests: "./operator",
		was: `end(errGoing)`,
		is:  `_ = end`,
	},
	{
		bug: "write beside the next leader", file: "operator/cmd/manager/leading.go", tests: "./operator/cmd/manager",
		was: `if writes(r) && !l.lasts(time.Now()) {`,
		is:  `if false {`,
	},
}
