// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
	"github.com/nodemaint/nodemaint/taint"
)

// TestModel lets everybody who has to do with a node do what they may, in any order, and looks after each step
// whether what must always be so is so.
func TestModel(t *testing.T) {
	fewer(t)
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			m := newModel(t)
			defer m.over()
			t.Repeat(m.actions())
			m.comesToAnEnd()
		})
	})
}

// fewer makes the model run a few times only, unless -rapid.checks says how often: make it some thousands to look
// deeper.
func fewer(t *testing.T) {
	const name = "rapid.checks"
	given := os.Getenv("RAPID_CHECKS") != ""
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return
	}
	was := flag.Lookup(name).Value.String()
	t.Cleanup(func() { require.NoError(t, flag.Set(name, was)) })
	require.NoError(t, flag.Set(name, "40"))
}

// model is a cluster with the node n1, who maintains it, and what is known of it beside the cluster itself.
type model struct {
	*mt.Cluster
	t      *rapid.T
	us     *party
	rival  *party
	turn   *party // whose requests come in now
	wrongs []string

	theirs  marks             // what would stand there without us
	foreign map[string]string // labels that nobody of us knows
	pods    int               // ever made
	things  int
}

// marks are what an administrator may have put on a node that we put on it too.
type marks struct {
	unschedulable bool
	drain, label  *string // values; nil if there is none
}

func newModel(t *rapid.T) *model {
	m := &model{
		Cluster: mt.New(mt.Options{Termination: 2 * time.Second, Controllers: []mt.Controller{mt.UnschedulableTaint, mt.BudgetStatus}},
			mt.Node("n1"), mt.DaemonSet("kube-system", "proxy"), mt.Pod("kube-system", "proxy-x", "n1", mt.OfDaemonSet("proxy"))),
		t: t, foreign: map[string]string{},
	}
	m.us = m.party(maintenance.DefaultHolder)
	m.rival = m.party("rival")
	m.OnRequest(m.witness)
	return m
}

func (m *model) over() {
	m.us.leave()
	m.rival.leave()
	synctest.Wait()
	m.Close()
	synctest.Wait()
}

// witness looks at each write as it arrives.
func (m *model) witness(r mt.Request) error {
	wrong := func(why string) {
		m.wrongs = append(m.wrongs, m.turn.holder+": "+r.String()+" "+string(r.Patch)+": "+why)
	}
	switch {
	case r.Subresource == "eviction":
		p := m.Pod(r.Namespace, r.Name)
		if p == nil || p.UID != *r.Preconditions.UID {
			wrong("of a pod that is another or none")
		} else if p.DeletionTimestamp != nil {
			wrong("of a pod that goes already")
		} else if p.Spec.NodeName != "n1" {
			wrong("of a pod of another node")
		}
		if !m.turn.holds() {
			wrong("without the lease")
		}
	case r.Verb == "patch" && r.Resource == "nodes":
		if strings.Contains(deed(r), "+") && !m.turn.givesBack && !m.turn.holds() {
			wrong("without the lease")
		}
	case r.Write() && r.Resource == "leases" && m.turn.heldByAnother():
		wrong("on another's lease")
	}
	return nil
}

func (m *model) record() string { return m.Node("n1").Annotations[maintenance.RecordAnnotation] }

// check looks at the node.
func (m *model) check(t *rapid.T) {
	synctest.Wait()
	require.Empty(t, m.wrongs)
	n := m.Node("n1")
	foreign := maps.Clone(n.Labels)
	delete(foreign, maintenance.ExcludeLabel)
	delete(foreign, "kubernetes.io/hostname")
	require.Equal(t, m.foreign, foreign, "labels of others")
	for k, v := range m.foreign {
		require.Contains(t, n.Spec.Taints, corev1.Taint{Key: k, Value: v, Effect: corev1.TaintEffectPreferNoSchedule})
		require.Equal(t, v, n.Annotations[k])
	}
	require.Equal(t, len(m.foreign), len(slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return m.foreign[t.Key] == "" })))
	if m.record() == "" {
		require.Equal(t, m.theirs.String(), marksOf(n).String(), "without a record the node is as others want it")
	}
}

// marksOf returns the marks on n.
func marksOf(n *corev1.Node) marks {
	out := marks{unschedulable: n.Spec.Unschedulable}
	for _, t := range n.Spec.Taints {
		if t.Key == taint.DrainKey {
			out.drain = ptr.To(t.Value)
		}
	}
	if v, ok := n.Labels[maintenance.ExcludeLabel]; ok {
		out.label = &v
	}
	return out
}

func (k marks) String() string {
	return fmt.Sprintf("unschedulable %t, drain %q, label %q", k.unschedulable, ptr.Deref(k.drain, "none"), ptr.Deref(k.label, "none"))
}
