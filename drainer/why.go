// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"fmt"
	"strings"
)

// Why says in one line what keeps the pod on its node: the budgets that block it, with their numbers, or its
// Reason. It is empty for a pod that only takes its time.
func (p Pod) Why() string {
	reason := strings.Join(strings.Fields(p.Reason), " ") // a server's words may be several lines
	if len(p.Budgets) == 0 {
		return reason
	}
	if reason != "" { // several budgets: which they are matters, not what they say
		names := make([]string, 0, len(p.Budgets))
		for _, b := range p.Budgets {
			names = append(names, p.Namespace+"/"+b.Name)
		}
		return reason + " (" + strings.Join(names, ", ") + ")"
	}
	says := make([]string, 0, len(p.Budgets))
	for _, b := range p.Budgets {
		says = append(says, b.says(p.Namespace))
	}
	return strings.Join(says, "; ")
}

// says gives the numbers of the budget. One that has more than it needs and still allows nothing has its
// disruptions used up until its controller counts again.
func (b Budget) says(namespace string) string {
	text := fmt.Sprintf("budget %s/%s needs %d healthy pods and has %d", namespace, b.Name, b.Desired, b.Healthy)
	if b.Healthy > b.Desired && b.Allowed == 0 {
		text += ", and allows no disruption at the moment"
	}
	return text
}
