// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"context"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// explain finds the budgets behind refused evictions: who blocks which pod, and with which numbers. It asks
// the API server only about answers not explained yet, and only where no copy says it. A namespace whose
// budgets cannot be read keeps the API server's words as explanation.
func (d *Drainer) explain(ctx context.Context, node string, m *memory, pods []judged) {
	budgets := d.knownBudgets(node, pods)
	for ns, unread := range m.unexplained(pods) {
		if _, ok := budgets[ns]; ok || !unread {
			continue
		}
		if list, err := d.listBudgets(ctx, ns); err == nil {
			budgets[ns] = selectors(list)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range pods {
		found, ok := budgets.of(j.pod)
		if a := m.attempts[j.pod.UID]; ok && a != nil && (a.behind != "" || a.refusedByServer()) {
			a.explained(found, d.opts.Clock.Now())
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
	if !a.known && a.answer.kind == serverFail && len(budgets) > 1 {
		a.tangled, a.due = setOf(budgets), now.Add(TangledDelay)
	}
	a.known = true
}

func (d *Drainer) listBudgets(ctx context.Context, namespace string) ([]*policyv1.PodDisruptionBudget, error) {
	list, err := d.client.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := make([]*policyv1.PodDisruptionBudget, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// useBudgets sees to it that the budgets of the namespaces whose pods must leave are copied while node is
// watched. A copy that has just begun is waited for, for a moment and once.
func (d *Drainer) useBudgets(ctx context.Context, node string, m *memory, pods []judged) {
	needs := map[string]bool{}
	for _, j := range pods {
		if j.fate == leaves && j.pod.DeletionTimestamp == nil {
			needs[j.pod.Namespace] = true
		}
	}
	copies := d.copiesOfBudgets(node, needs)
	wait, cancel := context.WithTimeout(ctx, AnswerWait)
	defer cancel()
	for ns, c := range copies {
		if m.awaits(ns) {
			c.Wait(wait, AnswerWait)
		}
	}
}

// awaits says whether a copy of the namespace's budgets was not waited for yet.
func (m *memory) awaits(namespace string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.awaited[namespace]
	m.awaited[namespace] = true
	return !was
}

// knownBudgets returns the budgets of the pods' namespaces as far as copies of them live; none if node is not
// watched.
func (d *Drainer) knownBudgets(node string, pods []judged) known {
	out := known{}
	if d.view(node) == nil {
		return out
	}
	for _, j := range pods {
		ns := j.pod.Namespace
		if _, ok := out[ns]; ok {
			continue
		}
		if c := d.budgets.get(ns); c != nil {
			out[ns] = selectors(c.Items())
		}
	}
	return out
}

// reason says in one line why a refused pod is blocked.
func (a *attempt) reason() string {
	switch {
	case a.tangled != "":
		return fmt.Sprintf("%d budgets select it, and the API server evicts no such pod", len(a.budgets))
	case len(a.budgets) == 0:
		return a.answer.words
	default:
		return ""
	}
}
