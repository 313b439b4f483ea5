// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nodemaint/nodemaint/test/bench/report"
)

// finish measures how long after a node's last pod has gone it is known to be drained.
type finish struct{ nodes, perNode int }

func (k finish) steps() int { return 2 }

func (k finish) measure(ctx context.Context, b *bench) (report.Section, error) {
	oursTook, err := k.one(ctx, b, nameOurs, func(ctx context.Context, s *stage) (map[string]time.Time, error) {
		return finishedByOperator(ctx, s, b.program)
	})
	if err != nil {
		return report.Section{}, fmt.Errorf("%s: %w", nameOurs, err)
	}
	loopTook, err := k.one(ctx, b, nameLoop, finishedByLoop)
	if err != nil {
		return report.Section{}, fmt.Errorf("%s: %w", nameLoop, err)
	}
	us, loop := median(oursTook), median(loopTook)
	return report.Section{
		How: fmt.Sprintf("%d nodes of %d pods, one node after another. From the moment a watch shows that the last pod has gone, to that at which a "+
			"watch shows `Succeeded`; for the library loop, to that at which its drain returns, which leaves out what its caller would still have to store. "+
			"How long pods take to go is spread over a second, so that no contender's own rhythm decides.", k.nodes, k.perNode),
		Columns: durationColumns(),
		Rows:    [][]string{durationRow(nameOurs, oursTook), durationRow(nameLoop, loopTook)},
		Targets: []report.Target{
			{Text: "median under 100 ms", Unit: "ms", Most: 100, Measured: inMilliseconds(us), Timing: true},
			{Text: "median under 1/10 of the library loop's", Most: 0.1, Measured: ratio(us, loop)},
		},
	}, nil
}

// one returns how long after its last pod had gone each node was finished, as the given function knows it.
func (k finish) one(ctx context.Context, b *bench, name string, drain func(context.Context, *stage) (map[string]time.Time, error)) ([]time.Duration, error) {
	b.tell.step(name)
	s, err := b.setUp(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	err = s.addPinned(ctx, k.nodes, k.perNode, func(node int) time.Duration {
		return 500*time.Millisecond + time.Second*time.Duration(node)/time.Duration(k.nodes)
	})
	if err != nil {
		return nil, err
	}
	g, err := s.measure(ctx, s.nodes)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	finished, err := drain(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := g.wait(ctx); err != nil {
		return nil, err
	}
	var out []time.Duration
	for _, n := range s.nodes {
		out = append(out, finished[n].Sub(g.when(n)))
	}
	return out, nil
}

func finishedByOperator(ctx context.Context, s *stage, program string) (map[string]time.Time, error) {
	if err := s.startOperator(ctx, program); err != nil {
		return nil, err
	}
	all, stop, err := s.successes(ctx, s.nodes)
	if err != nil {
		return nil, err
	}
	defer stop()
	out := map[string]time.Time{}
	for i, n := range s.nodes {
		if err := s.createAll(ctx, []string{n}); err != nil {
			return nil, err
		}
		if err := all.waitFor(ctx, i+1); err != nil {
			return nil, err
		}
		out[n] = all.when(n)
	}
	return out, nil
}

func finishedByLoop(ctx context.Context, s *stage) (map[string]time.Time, error) {
	c := libraryLoop()
	at, err := c.begin(ctx, s, s.nodes)
	if err != nil {
		return nil, err
	}
	err = at.wait(ctx)
	if _, endErr := at.end(); err == nil {
		err = endErr
	}
	if err != nil {
		return nil, err
	}
	log, err := os.Open(s.log("peer"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	out := map[string]time.Time{}
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == "drained" {
			if out[words[1]], err = time.Parse(time.RFC3339Nano, words[2]); err != nil {
				return nil, err
			}
		}
	}
	if len(out) != len(s.nodes) {
		return nil, fmt.Errorf("the library loop says that it has drained %d of %d nodes", len(out), len(s.nodes))
	}
	return out, nil
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[(len(d)-1)/2]
}

func durationColumns() []string {
	return []string{"contender", "least", "median", "most", "times measured"}
}

func durationRow(name string, d []time.Duration) []string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.0f ms", inMilliseconds(d)) }
	return []string{name, ms(slices.Min(d)), ms(median(d)), ms(slices.Max(d)), fmt.Sprint(len(d))}
}
