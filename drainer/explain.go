// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"context"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/internal/mirror"
)

// explain finds the budgets behind refused evictions: who blocks which pod, and with which numbers.
// It reads the budgets of a namespace only while one of its pods is refused, from a copy if the node is
// watched. A namespace whose budgets cannot be read keeps the API server's words as explanation.
func (d *Drainer) explain(ctx context.Context, node string, m *memory, pods []judged) {
	asked := m.unexplained(pods)
	budgets := d.budgetsOf(ctx, node, asked)
	d.budgets.keep(node, asked)

	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range pods {
		found, ok := budgets.of(j.pod)
		if a := m.attempts[j.pod.UID]; ok && a != nil && a.refusedByServer() {
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

// budgetsOf reads the budgets of the namespaces, as far as they can be read: from copies if the node is
// watched, else, where there is an answer that was not explained yet, from the API server.
func (d *Drainer) budgetsOf(ctx context.Context, node string, asked map[string]bool) known {
	copies := map[string]*mirror.Mirror[*policyv1.PodDisruptionBudget]{}
	for ns := range asked { // all of them first: they begin beside each other
		copies[ns] = d.useBudgets(node, ns)
	}
	wait, cancel := context.WithTimeout(ctx, AnswerWait)
	defer cancel()
	out := known{}
	for ns, unread := range asked {
		c := copies[ns]
		if c != nil && (c.Live() || unread && c.Wait(wait, AnswerWait)) {
			out[ns] = c.Items()
		} else if unread {
			if list, err := d.listBudgets(ctx, ns); err == nil {
				out[ns] = list
			}
		}
	}
	return out
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

// knownBudgets returns the budgets of the pods' namespaces as far as copies of them live.
func (d *Drainer) knownBudgets(pods []judged) known {
	out := known{}
	for _, j := range pods {
		ns := j.pod.Namespace
		if _, ok := out[ns]; ok {
			continue
		}
		if c := d.budgets.get(ns); c != nil {
			out[ns] = c.Items()
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
