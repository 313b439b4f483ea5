// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const text = "wall at most 1.15 times the limit"

func wall(measured float64) Target { return Target{Text: text, Most: 1.15, Measured: measured} }

func TestVerdict(t *testing.T) {
	notes := Notes{"W1": {text: {UpTo: 1.3, Why: "The API server takes one eviction of a budget at a time."}}}
	for _, tc := range []struct {
		reason string
		target Target
		notes  Notes
		want   string
		fails  bool
	}{
		{reason: "below", target: wall(1.1), want: met},
		{reason: "just reached", target: wall(1.15), want: met},
		{reason: "met although there is a note", target: wall(1.1), notes: notes, want: met},
		{reason: "above", target: wall(1.16), want: missed, fails: true},
		{reason: "above, and explained", target: wall(1.3), notes: notes, want: explained},
		{reason: "further above than what is explained", target: wall(1.31), notes: notes, want: missed, fails: true},
		{reason: "a note without words explains nothing", target: wall(1.2), notes: Notes{"W1": {text: {UpTo: 2}}}, want: missed, fails: true},
		{reason: "a note on another workload", target: wall(1.2), notes: Notes{"W2": notes["W1"]}, want: missed, fails: true},
		{reason: "a contender was not done", target: Target{Text: text, Most: 1.15, Measured: 1, Unknown: true}, notes: notes, want: missed, fails: true},
		{reason: "a time as it is fails nothing", target: Target{Text: text, Most: 100, Measured: 120, Timing: true}, want: told},
		{reason: "a time as it is may be explained", target: Target{Text: text, Most: 1, Measured: 1.2, Timing: true}, notes: notes, want: explained},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			require.Equal(t, tc.want, verdict("W1", tc.target, tc.notes))
			failed := Failed([]Section{{Workload: "W1", Targets: []Target{tc.target}}}, tc.notes)
			if tc.fails {
				require.Equal(t, []string{"W1: " + text}, failed)
			} else {
				require.Empty(t, failed)
			}
		})
	}
}

func TestValue(t *testing.T) {
	for _, tc := range []struct {
		measured   float64
		unit, want string
	}{
		{1, "", "1"}, {1.2345, "", "1.23"}, {0.01234, "", "0.0123"}, {12.345, "MiB", "12.3 MiB"}, {-3.21, "%", "-3.21 %"}, {4321.2, "", "4321"}, {99.97, "ms", "100 ms"},
	} {
		require.Equal(t, tc.want, Target{Measured: tc.measured, Unit: tc.unit}.value())
	}
	require.Equal(t, "not done in time", Target{Measured: 1, Unknown: true}.value())
}

func sample(name string, measured float64) Section {
	return Section{
		Workload: name, Title: "20 nodes", How: "As it is.", Columns: []string{"contender", "wall"}, Rows: [][]string{{"nodemaint", "3.0 s"}},
		Targets: []Target{wall(measured)},
		Bars:    []Bar{{Contender: "nodemaint", Wall: measured, PerPod: 1.2}, {Contender: "library loop", Wall: 40, PerPod: 5, Cut: true}},
		Run:     Run{Date: "2026-01-02", Command: "make bench", Commit: "abc", Machine: "2 cores", Versions: []string{"Go 1", "Kubernetes 2"}},
	}
}

func TestPage(t *testing.T) {
	notes := Notes{"W2": {text: {UpTo: 2, Why: "Because.\n"}}}
	late := sample("W3", 9)
	late.Run.Date = "2026-01-03"
	page := Page([]Section{late, sample("W2", 1.5), sample("W1", 1)}, notes, "chart.svg")
	for reason, want := range map[string]string{
		"targets in order, with their verdicts": `
| W1 | wall at most 1.15 times the limit | 1 | met |
| W2 | wall at most 1.15 times the limit | 1.5 | **missed**, see below |
| W3 | wall at most 1.15 times the limit | 9 | **missed** |

**W2, wall at most 1.15 times the limit**: measured 1.5. Because.

![Time and requests of each contender](chart.svg)
`,
		"a section": `
## W2: 20 nodes

As it is.

| contender | wall |
|---|---|
| nodemaint | 3.0 s |
`,
		"runs, each once": `
| W1, W2 | 2026-01-02 | ` + "`make bench`" + ` | abc | 2 cores | Go 1, Kubernetes 2 |
| W3 | 2026-01-03 | ` + "`make bench`" + ` | abc | 2 cores | Go 1, Kubernetes 2 |
`,
	} {
		require.Contains(t, page, want, reason)
	}
	require.NotContains(t, Page([]Section{late}, nil, ""), "![")
}

func TestNotes(t *testing.T) {
	n, err := ParseNotes([]byte("W1:\n  " + text + ":\n    upTo: 1.3\n    why: Because.\n"))
	require.NoError(t, err)
	require.Equal(t, Notes{"W1": {text: {UpTo: 1.3, Why: "Because."}}}, n)
	require.NoError(t, n.Check([]Section{sample("W1", 1), sample("W2", 1)}))
	require.NoError(t, n.Check(nil), "nothing is measured yet")

	_, err = ParseNotes([]byte("W1:\n  a target:\n    because: it is\n"))
	require.Error(t, err, "a key that does not exist")
	require.ErrorContains(t, Notes{"W1": {"gone": {}}}.Check([]Section{sample("W1", 1)}), `"gone"`)
}

func TestChart(t *testing.T) {
	svg, err := Chart([]Section{sample("W1", 1.1), {Workload: "W2"}, sample("W3", 1.3)})
	require.NoError(t, err)
	for _, want := range []string{"W1: 20 nodes", "W3: 20 nodes", "nodemaint", "library loop", "1.10", "&gt;40"} {
		require.Contains(t, string(svg), want)
	}
	require.NotContains(t, string(svg), "W2")
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
	}

	svg, err = Chart([]Section{{Workload: "W2"}})
	require.NoError(t, err)
	require.Nil(t, svg)
}

func TestDir(t *testing.T) {
	d := Dir(t.TempDir())
	notes, err := d.Notes()
	require.NoError(t, err)
	require.Empty(t, notes)

	require.NoError(t, d.Save(sample("W1", 1)))
	require.NoError(t, d.Save(sample("W2", 1)))
	require.NoError(t, d.Save(sample("W1", 1.1)), "another run of the same")
	sections, err := d.Sections()
	require.NoError(t, err)
	require.Equal(t, []Section{sample("W1", 1.1), sample("W2", 1)}, sections)

	require.NoError(t, d.Render())
	page, err := os.ReadFile(filepath.Join(string(d), "benchmarks.md"))
	require.NoError(t, err)
	require.Equal(t, Page(sections, nil, "benchmarks/chart.svg"), string(page))
	require.FileExists(t, filepath.Join(string(d), "benchmarks", "chart.svg"))
}
