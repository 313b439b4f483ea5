// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// line is one line of the operator's log, as far as these tests look at it.
type line struct {
	Msg, Node, Pod, From, To, Budgets string
	Marks                             []string
	NodeMaintenance                   struct{ Name string }
	Uncordoned                        bool
}

// linesOf returns the lines about a node. Every line of the log must be JSON.
func linesOf(t *testing.T, path, node string) []line {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	var out []line
	for s := bufio.NewScanner(file); s.Scan(); {
		if !strings.Contains(s.Text(), node) {
			continue
		}
		var l line
		require.NoError(t, json.Unmarshal(s.Bytes(), &l), "%s", s.Text())
		if l.Node == node {
			out = append(out, l)
		}
	}
	return out
}

// requireDiscreet checks that nothing in a log lets its reader act as another.
func (e *env) requireDiscreet(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotEmpty(t, text)
	for _, secret := range []string{
		"PRIVATE KEY",
		"UFJJVkFURSBLRV", "BSSVZBVEUgS0VZ", "QUklWQVRFIEtFW", // the same in base64, at each offset
		"eyJhbGciOi", // how a token begins
		"Bearer ",
	} {
		require.False(t, strings.Contains(string(text), secret), "%q is in the log", secret)
	}
}

func TestTheLogTellsEachStepOnce(t *testing.T) {
	t.Parallel()
	e := shared
	node, ns := e.node(t), e.namespace(t)
	e.pod(t, ns, "lone", node)
	e.pod(t, ns, "web-0", node, labelled(map[string]string{"app": "web"}))
	b := e.budget(t, ns, "web", 1, 1)
	nm := e.maintain(t, node)
	e.until(t, nm, "left with the blocked pod", onlyPending(ns+"/web-0"))
	posted := e.evictions(t, ns, "web-0")
	e.editNode(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	e.eventually(t, "the node to be held again", func() bool { return e.getNode(t, node).Spec.Unschedulable })
	e.eventually(t, "a retry", func() bool { return e.evictions(t, ns, "web-0") > posted })
	e.relax(t, b)
	e.succeed(t, nm)
	e.end(t, nm)

	told := map[string][]line{}
	for _, l := range linesOf(t, e.operator.Log, node) {
		require.Equal(t, nm.Name, l.NodeMaintenance.Name, "%+v", l)
		told[l.Msg] = append(told[l.Msg], l)
	}
	var evicted []string
	for _, l := range told["eviction accepted"] {
		evicted = append(evicted, l.Pod)
	}
	require.ElementsMatch(t, []string{ns + "/lone", ns + "/web-0"}, evicted)
	require.Len(t, told["pod blocked"], 1)
	require.Equal(t, ns+"/web-0", told["pod blocked"][0].Pod)
	require.Equal(t, "budget "+ns+"/web needs 1 healthy pods and has 1", told["pod blocked"][0].Budgets)
	require.Len(t, told["marks put back"], 1)
	require.Equal(t, []string{"spec.unschedulable"}, told["marks put back"][0].Marks)
	require.Len(t, told["phase changed"], 2)
	require.Equal(t, string(v1beta1.MaintenanceRunning), told["phase changed"][0].To)
	require.Equal(t, string(v1beta1.MaintenanceSucceeded), told["phase changed"][1].To)
	require.Len(t, told["node given back"], 1)
	require.True(t, told["node given back"][0].Uncordoned)
	e.requireDiscreet(t, e.operator.Log)
}
