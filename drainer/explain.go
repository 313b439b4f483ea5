// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"context"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// explain finds the budgets behind refused evictions: who blocks which pod, and with which numbers.
// It reads the budgets of a namespace only while one of its pods is refused, from a copy if the node is
// watched. A namespace whose budgets cannot be read keeps the API server's words as explanation.
func (d *Drainer) explain(ctx context.Context, node string, m *memory, pods []judged) {
	asked := m.unexplained(pods)
	budgets := map[string][]*policyv1.PodDisruptionBudget{}
	needs := map[string]bool{}
	for ns, unread := range asked {
		needs[ns] = true
		if found, ok := d.budgetsOf(ctx, node, ns, unread); ok {
			budgets[ns] = found
		}
	}
	d.budgets.keep(node, needs)

	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range pods {
		found, ok := budgets[j.pod.Namespace]
		if a := m.attempts[j.pod.UID]; ok && a != nil && a.refusedByServer() {
			a.explained(selecting(j.pod, found), d.opts.Clock.Now())
		}
	}
}

// unexplained returns the namespaces of pods that a budget may be blocking, and for each whether there
// is an answer among them that was not explained yet.
func (m *memory) unexplained(pods []judged) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := map[string]bool{}
	for _, j := range pods {
		if a := m.attempts[j.pod.UID]; a != nil && a.refusedByServer() {
			asked[j.pod.Namespace] = asked[j.pod.Namespace] || !a.known
		}
	}
	return asked
}

// refusedByServer says whether the last answer may be a budget's.
func (a *attempt) refusedByServer() bool {
	return a.answer.kind == blocked || a.answer.kind == serverFail
}

// explained notes the budgets that select the pod.
func (a *attempt) explained(budgets []*policyv1.PodDisruptionBudget, now time.Time) {
	a.budgets = budgets
	a.tangled = a.answer.kind == serverFail && len(budgets) > 1
	if a.tangled && !a.known {
		a.due = now.Add(TangledDelay)
	}
	a.known = true
}

// budgetsOf reads the budgets of a namespace; not ok if they cannot be, or need not be.
func (d *Drainer) budgetsOf(ctx context.Context, node, namespace string, unread bool) ([]*policyv1.PodDisruptionBudget, bool) {
	if v := d.view(node); v != nil {
		if c := d.budgets.use(v.ctx, namespace, node); c.Wait(ctx, AnswerWait) {
			return c.Items(), true
		}
	}
	if !unread {
		return nil, false
	}
	list, err := d.client.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, false
	}
	out := make([]*policyv1.PodDisruptionBudget, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, true
}

// knownBudgets returns the budgets of the pods' namespaces as far as copies of them live.
func (d *Drainer) knownBudgets(pods []judged) []*policyv1.PodDisruptionBudget {
	var all []*policyv1.PodDisruptionBudget
	seen := map[string]bool{}
	for _, j := range pods {
		if ns := j.pod.Namespace; !seen[ns] {
			seen[ns] = true
			if c := d.budgets.get(ns); c != nil {
				all = append(all, c.Items()...)
			}
		}
	}
	return all
}

// reason says in one line why a refused pod is blocked.
func (a *attempt) reason() string {
	switch {
	case a.tangled:
		return fmt.Sprintf("%d budgets select it, and the API server evicts no such pod", len(a.budgets))
	case len(a.budgets) == 0:
		return a.answer.words
	default:
		return ""
	}
}
