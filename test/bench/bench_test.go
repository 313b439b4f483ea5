// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodemaint/nodemaint/test/cluster"
)

func TestChoose(t *testing.T) {
	for _, tc := range []struct {
		reason, names string
		want          []string
		fails         bool
	}{
		{reason: "all", want: []string{"W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8"}},
		{reason: "one", names: "W4", want: []string{"W4"}},
		{reason: "some", names: "W6,W1", want: []string{"W6", "W1"}},
		{reason: "one that does not exist", names: "W1,W99", fails: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			all, err := choose(tc.names)
			require.Equal(t, tc.fails, err != nil)
			var names []string
			for _, w := range all {
				names = append(names, w.name)
				require.Positive(t, w.kind.steps())
			}
			require.Equal(t, tc.want, names)
		})
	}
}

func TestTurns(t *testing.T) {
	seen := map[int]bool{}
	for _, w := range workloads() {
		seen[w.turn] = true
		require.LessOrEqual(t, w.turn, turns, "%s would never be measured", w.name)
		require.Positive(t, w.turn, "%s would never be measured", w.name)
	}
	require.Len(t, seen, turns)
	for _, w := range workloads() {
		if _, races := w.kind.(race); races {
			require.Empty(t, beside(w, workloads()), "%s: whoever is timed against others has the machine for itself", w.name)
		}
	}
	light, err := choose("W1,W2,W6,W7")
	require.NoError(t, err)
	require.Equal(t, " Measured at the same time as W6 and W7.", beside(light[1], light))
	require.Empty(t, beside(light[1], light[:2]))
}

func TestField(t *testing.T) {
	requests := make([]cluster.AuditEvent, 300)
	spent := clusterCPU{cluster.APIServer: 4 * time.Second, cluster.Etcd: 3 * time.Second}.since(
		clusterCPU{cluster.APIServer: time.Second, cluster.Etcd: time.Second})
	f := field{
		{name: nameOurs, pods: 200, nodes: 2, wall: 3 * time.Second, times: []time.Duration{time.Second, 2 * time.Second}, requests: requests, used: usage{peak: 50 << 20, cpu: 1500 * time.Millisecond}, cluster: spent},
		{name: nameKubectl, pods: 200, nodes: 2, wall: 6 * time.Second},
		{name: nameLoop, pods: 200, nodes: 2, wall: 40 * time.Second, times: []time.Duration{time.Second}, requests: requests, cut: true, left: 50},
		{name: limitPrefix + "one way", pods: 200, nodes: 2, wall: 2 * time.Second},
		{name: limitPrefix + "another", pods: 200, nodes: 2, wall: 2500 * time.Millisecond},
	}
	require.Equal(t, 2*time.Second, f.limit(), "the better of the two")
	rows := f.rows()
	require.Equal(t, []string{nameOurs, "3.0 s", "1.0 s", "1.0 s", "2.0 s", "300", "1.50", "50 MiB", "1.5 s", "5.0 s, 3.0", "1.50"}, rows[0])
	require.Equal(t, []string{nameLoop, "> 40.0 s, 50 of 200 pods left", "1.0 s", "1.0 s", "–", "300", "2.00", "0 MiB", "0.0 s", "0.0 s, 0.0", "> 20.00"}, rows[2])
	require.Len(t, raceColumns(), len(rows[0]))
	require.True(t, f.bars()[2].Cut)

	measured := map[string]float64{}
	for _, target := range targetsOfW1(f) {
		measured[target.Text] = target.Measured
	}
	require.Equal(t, map[string]float64{
		"wall at most 1.15 times the limit": 1.5, "wall at most 0.8 times kubectl drain's": 0.5,
		"wall at most 1/5 of the library loop's": 0.075, "at most 230 requests: one a pod and 15 a node": 300,
	}, measured)
	require.Zero(t, field{}.limit())
}

func TestPatience(t *testing.T) {
	limits := map[string][]result{
		nameOurs:                   {{name: nameOurs, wall: time.Second}},
		limitPrefix + "one way":    {{name: limitPrefix + "one way", wall: time.Minute}},
		limitPrefix + "in no time": {{name: limitPrefix + "in no time", wall: 2 * time.Second, cut: true}},
	}
	r := race{longer: time.Hour, peers: 30 * time.Second}
	require.Equal(t, time.Minute, r.patience(limitPerBudget(), limits), "a slower limit tells nothing")
	require.Equal(t, time.Hour, r.patience(limitPerBudget(), nil))
	require.Equal(t, time.Hour, r.patience(ours(""), limits))
	require.Equal(t, 30*time.Second, r.patience(kubectl(), limits))
	require.Equal(t, patience, race{}.patience(kubectl(), limits))
	limits[limitPerBudget().name] = []result{{wall: time.Hour}}
	require.Equal(t, time.Hour, r.patience(limitPerBudget(), limits), "of several runs the median counts")
	require.Equal(t, patience, race{}.patience(limitPerBudget(), nil))
}

func TestMiddleRun(t *testing.T) {
	of := func(wall time.Duration, cut bool) result { return result{nodes: 1, wall: wall * time.Second, cut: cut} }
	for _, tc := range []struct {
		reason string
		runs   []result
		want   time.Duration
		shown  string
	}{
		{"one", []result{of(3, false)}, 3, "3.0 s"},
		{"the one in the middle", []result{of(9, false), of(3, false), of(4, false)}, 4, "4.0 s (3.0 to 9.0)"},
		{"one that was ended is the slowest, however long it was let run", []result{of(9, false), of(3, true), of(4, false)}, 9, "9.0 s (from 4.0, and once not done)"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := middleRun(tc.runs)
			require.Equal(t, tc.want*time.Second, got.wall)
			require.Equal(t, tc.shown, field{got}.rows()[0][1])
		})
	}
}

func TestEnded(t *testing.T) {
	require.False(t, ended(nil), "who has not run yet may")
	require.False(t, ended([]result{{}, {}}))
	require.True(t, ended([]result{{}, {cut: true}}))
}

func TestOrder(t *testing.T) {
	var names []string
	for _, c := range (race{rounds: 2}).order(contenders("")) {
		names = append(names, c.name)
	}
	require.Equal(t, []string{
		nameOurs, nameKubectl, nameLoop, "limit, 64 in flight", "limit, 1 a budget",
		nameOurs, "limit, 64 in flight", "limit, 1 a budget",
	}, names)
}

func TestTargetsOfARaceThatWasCut(t *testing.T) {
	quick := result{wall: time.Second, pods: 10, nodes: 1}
	named := func(r result, name string) result { r.name = name; return r }
	cut := quick
	cut.cut = true
	for _, tc := range []struct {
		reason           string
		us, one, another result
		met              bool
	}{
		{reason: "all done", us: quick, one: quick, another: quick, met: true},
		{reason: "one limit is enough", us: quick, one: cut, another: quick, met: true},
		{reason: "no limit is done", us: quick, one: cut, another: cut},
		{reason: "we are not done, though the limit took as long", us: cut, one: quick, another: quick},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := field{named(tc.us, nameOurs), named(quick, nameKubectl), named(quick, nameLoop), named(tc.one, limitPrefix+"a"), named(tc.another, limitPrefix+"b")}
			require.Equal(t, tc.met, targetsOfW3(f)[0].Met())
			require.Equal(t, !tc.us.cut, targetsOfW3(f)[1].Met(), "the requests are all counted if we are done")
			require.Equal(t, !tc.us.cut, targetsOfW1(f)[3].Met(), "the same in W1")
		})
	}
}

func TestIdleSection(t *testing.T) {
	k := idle{nodes: 2, window: 2 * time.Minute}
	var events []cluster.AuditEvent
	for range 24 {
		events = append(events, cluster.AuditEvent{Subresource: "eviction", Name: "a"})
	}
	events = append(events, cluster.AuditEvent{Subresource: "eviction", Name: "b"})
	for range 6 {
		events = append(events, cluster.AuditEvent{Verb: "get", Resource: "leases"})
	}
	s := k.section(3*time.Second, events)
	require.Equal(t, [][]string{{nameOurs, "12.0", "1.50", "2.5 % of a core"}}, s.Rows)
	for i, want := range []float64{12, 1.5, 2.5} {
		require.InDelta(t, want, s.Targets[i].Measured, 1e-9)
		require.True(t, s.Targets[i].Met())
	}
}

func TestMiddle(t *testing.T) {
	require.Equal(t, 2*time.Second, median([]time.Duration{3 * time.Second, time.Second, 2 * time.Second}))
	require.Equal(t, time.Second, median([]time.Duration{3 * time.Second, time.Second}), "of two, the lesser")
}

func TestArrivals(t *testing.T) {
	var told [][2]int
	a := newArrivals(2, func(have, want int) { told = append(told, [2]int{have, want}) })
	began := time.Now()
	a.mark("x")
	first := a.when("x")
	a.mark("x")
	require.Equal(t, first, a.when("x"), "the first time counts")
	require.NoError(t, a.waitFor(t.Context(), 1))

	cause := errors.New("over")
	ended, end := context.WithCancelCause(t.Context())
	end(cause)
	require.ErrorIs(t, a.wait(ended), cause)

	a.mark("y")
	require.NoError(t, a.wait(t.Context()))
	require.Equal(t, [][2]int{{1, 2}, {1, 2}, {2, 2}}, told)
	times := a.times(began)
	require.Len(t, times, 2)
	require.LessOrEqual(t, times[0], times[1])
	require.Zero(t, a.when("z"))

	lost := newArrivals(1, func(int, int) {})
	lost.lose(cause)
	require.ErrorIs(t, lost.wait(t.Context()), cause, "a watch that has ended will never tell")
}

func TestEvicts(t *testing.T) {
	e := cluster.AuditEvent{User: "u", Subresource: "eviction", Name: "drained-1-0"}
	for _, tc := range []struct {
		reason, user, node string
		want               bool
	}{
		{reason: "its pod", user: "u", node: "drained-1", want: true},
		{reason: "another's user", user: "v", node: "drained-1"},
		{reason: "a node whose name begins alike", user: "u", node: "drained-10"},
	} {
		require.Equal(t, tc.want, evicts(e, tc.user, tc.node), tc.reason)
	}
}
