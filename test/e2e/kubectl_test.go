// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// A person with kubectl sees what is going on.
func TestKubectl(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.deployment(t, ns, "web", node, 1)
	b := e.budget(t, ns, "web", 1, 1)
	nm := e.maintain(t, node)
	e.until(t, nm, "blocked", drainedReason(v1beta1.ReasonBlockedByBudget))
	kubectl := func(args ...string) string {
		out, err := e.Kubectl(t.Context(), nil, args...)
		require.NoError(t, err)
		return out
	}
	line := "budget " + ns + "/web needs 1 healthy pods and has 1"

	out := kubectl("get", "nm", nm.Name)
	require.Equal(t, []string{"NAME", "NODENAME", "PHASE", "PROGRESS", "AGE"}, strings.Fields(strings.Split(out, "\n")[0]))
	require.Equal(t, []string{node, node, "Running", "0"}, strings.Fields(strings.Split(out, "\n")[1])[:4])

	out = kubectl("get", "nm", nm.Name, "-o", "wide")
	require.Equal(t, []string{"NAME", "NODENAME", "PHASE", "PROGRESS", "AGE", "REASON", "PENDING", "LASTERROR"}, strings.Fields(strings.Split(out, "\n")[0]))
	require.Contains(t, out, t.Name(), "the reason")
	require.Contains(t, out, "1 of 1 pods left")
	require.Contains(t, out, line)

	out = kubectl("describe", "nm", nm.Name)
	require.Contains(t, out, "BeginMaintenance")
	require.Contains(t, out, line)
	require.Contains(t, out, "BlockedByBudget")

	e.relax(t, b)
	require.Contains(t, kubectl("wait", "--for=condition=Ready", "nm/"+nm.Name, "--timeout=60s"), "condition met")
	require.Contains(t, kubectl("describe", "nm", nm.Name), "SucceedMaintenance")
	require.Contains(t, kubectl("get", "nodemaintenances.nodemaintenance.medik8s.io", nm.Name), "Succeeded")
	kubectl("delete", "nm", nm.Name, "--wait", "--timeout=60s")
	require.Contains(t, kubectl("describe", "node", node), "UncordonNode")
	require.NotContains(t, kubectl("get", "node", node), "SchedulingDisabled")
}
