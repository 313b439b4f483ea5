// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
)

// Section is what one workload has shown.
type Section struct {
	Workload string     `json:"workload"` // its short name: W1
	Title    string     `json:"title"`
	How      string     `json:"how"` // how it was measured, a paragraph of Markdown
	Columns  []string   `json:"columns"`
	Rows     [][]string `json:"rows"`
	Targets  []Target   `json:"targets"`
	Bars     []Bar      `json:"bars,omitempty"`
	Run      Run        `json:"run"`
}

// Bar is one contender in the chart.
type Bar struct {
	Contender string  `json:"contender"`
	Wall      float64 `json:"wall"`   // in proportion to the limit's
	PerPod    float64 `json:"perPod"` // requests
	// Cut says that the contender was ended before it was done, so that both are too low.
	Cut bool `json:"cut,omitempty"`
}

// Run says when, where and with what a section was measured.
type Run struct {
	Date     string   `json:"date"`
	Command  string   `json:"command"`
	Commit   string   `json:"commit"`
	Machine  string   `json:"machine"`
	Versions []string `json:"versions"`
}

// Target is what must be reached: a measured value that may be Most at most.
type Target struct {
	Text     string  `json:"text"` // with the limit in words; it also names the target in the notes
	Unit     string  `json:"unit,omitempty"`
	Most     float64 `json:"most"`
	Measured float64 `json:"measured"`
	// Timing is a time as it is. Another machine has another, so one that is missed is told but fails nothing.
	Timing bool `json:"timing,omitempty"`
	// Unknown says that a contender was ended before it was done, so that Measured says too little.
	Unknown bool `json:"unknown,omitempty"`
}

// Met reports whether the target is reached.
func (t Target) Met() bool { return !t.Unknown && t.Measured <= t.Most }

// value is the measured value with its unit, to three digits or, of a large one, to the whole number.
func (t Target) value() string {
	if t.Unknown {
		return "not done in time"
	}
	format := "%.3g %s"
	if t.Measured >= 100 {
		format = "%.0f %s"
	}
	return strings.TrimSpace(fmt.Sprintf(format, t.Measured, t.Unit))
}

// Table is the section's table in Markdown.
func (s Section) Table() string {
	var b strings.Builder
	row := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	row(s.Columns)
	b.WriteString(strings.Repeat("|---", len(s.Columns)) + "|\n")
	for _, r := range s.Rows {
		row(r)
	}
	return b.String()
}
