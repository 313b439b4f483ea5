// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// series makes quiet samples a minute apart, of which all three quantities have these values.
func series(values ...float64) []sample {
	var out []sample
	for i, v := range values {
		out = append(out, sample{when: quiet, process: 1, at: time.Duration(i) * time.Minute, memory: v, goroutines: v, watches: v})
	}
	return out
}

func TestFlat(t *testing.T) {
	for _, tc := range []struct {
		reason string
		values []float64
		err    error
	}{
		{"constant", []float64{100, 100, 100, 100}, nil},
		{"falling", []float64{100, 100, 90, 80, 70}, nil},
		{"up and down", []float64{100, 100, 103, 97, 102, 100}, nil},
		{"growing while it warms up", []float64{10, 50, 100, 100, 101, 100}, nil},
		{"growing", []float64{100, 100, 104, 108, 112}, errGrows},
		{"growing, but for the last", []float64{100, 100, 100, 120, 140, 160, 99}, errGrows},
		{"the last alone is high", []float64{100, 100, 100, 100, 100, 100, 100, 106}, errGrows},
		{"too few to tell", []float64{100, 100, 100}, errTooFew},
		{"none", []float64{0, 0, 0, 0}, errNothing},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			g, err := measure(quantities()[1], series(tc.values...))
			if err == nil {
				err = g.flat()
			}
			require.ErrorIs(t, err, tc.err)
		})
	}
}

func TestMeasure(t *testing.T) {
	g, err := measure(quantity{of: func(s sample) float64 { return s.memory }}, series(1000, 100, 110, 120))
	require.NoError(t, err)
	require.InDelta(t, 20, g.grown, 1e-9)
	require.InDelta(t, 100*20.0/110, g.rise, 1e-9, "a straight line rises by what it rises, here in percent of 110")
	require.Zero(t, slope(quantity{of: func(sample) float64 { return 1 }}, series(1)), "one point has no slope")
}

func TestEachQuantityIsJudgedByItself(t *testing.T) {
	r := &run{process: 1, samples: series(100, 100, 100, 100)}
	require.Empty(t, r.judge())
	r.samples[3].memory, r.samples[3].goroutines, r.samples[3].watches = 110, 110, 110
	errs := r.judge()
	require.Len(t, errs, 2, "memory has more play")
	require.ErrorContains(t, errs[0], "goroutines")
	require.ErrorContains(t, errs[1], "watches")
}

func TestQuietSamplesAreOfTheLastProcess(t *testing.T) {
	r := &run{process: 2, samples: series(1, 2, 3)}
	r.samples[1].process, r.samples[2].process = 2, 2
	r.samples[2].when = busy
	require.Equal(t, r.samples[1:2], r.quiet())
}

func TestPage(t *testing.T) {
	r := &run{length: 10 * time.Minute, process: 1, samples: series(100<<20, 100<<20, 110<<20, 110<<20), faults: map[string]int{"operator killed": 2, "connection silent": 3}, looks: 7}
	r.samples[0].ended = 12
	r.samples[0].goroutines, r.samples[0].watches = 80, 90
	page := r.page()
	require.Contains(t, page, "connection silent (3 times), operator killed (2 times)")
	require.Contains(t, page, "| 0.0 min | 1 | 12 | 100.0 MiB | 80 | 90 |\n")
	require.Contains(t, page, "| memory | +10.0 % |")
	require.Contains(t, page, "| 20 % | flat |")
	require.Contains(t, page, "| 5 % | **it grows** |")
	require.NotContains(t, page, "goleak", "of what has not been looked at nothing is said")
	r.clean = true
	require.Contains(t, r.page(), "not one goroutine was left of it")
	require.Contains(t, (&run{}).page(), "too short")
}

func TestInsert(t *testing.T) {
	const document = "# Title\n\n" + sectionBegins + "old\n" + sectionEnds + "\n## Next\n"
	got, err := insert(document, "new\n")
	require.NoError(t, err)
	require.Equal(t, "# Title\n\n"+sectionBegins+"new\n"+sectionEnds+"\n## Next\n", got)
	for _, none := range []string{"", sectionBegins, sectionEnds, sectionEnds + sectionBegins} {
		_, err := insert(none, "new\n")
		require.ErrorIs(t, err, errNoPlace)
	}
}

func TestKillsComeEarlyOnly(t *testing.T) {
	require.Len(t, troubles(true), len(troubles(false))+1)
	require.Equal(t, "operator killed", troubles(true)[len(troubles(false))].name)
}

func TestSum(t *testing.T) {
	text := []byte("# TYPE open gauge\nopen{verb=\"WATCH\",resource=\"pods\"} 2\nopen{verb=\"WATCH\",resource=\"nodes\"} 3\nopen{verb=\"CONNECT\",resource=\"pods\"} 7\n# TYPE other gauge\nother 4\n")
	n, err := sum(text, "open", map[string]string{"verb": "WATCH"})
	require.NoError(t, err)
	require.InDelta(t, 5, n, 0)
	n, err = sum(text, "other", nil)
	require.NoError(t, err)
	require.InDelta(t, 4, n, 0)
	_, err = sum(text, "open", map[string]string{"verb": "LIST"})
	require.ErrorIs(t, err, errNoMetric)
	_, err = sum(text, "absent", nil)
	require.ErrorIs(t, err, errNoMetric)
	_, err = sum([]byte("{{{"), "open", nil)
	require.Error(t, err)
}
