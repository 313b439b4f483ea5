// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// Note is what somebody has written about a target that is missed.
type Note struct {
	// UpTo is the highest measured value that the note explains. Beyond it something else is wrong.
	UpTo float64 `json:"upTo"`
	// Why says what stands in the way.
	Why string `json:"why"`
}

// Notes are notes by workload and by the text of the target.
type Notes map[string]map[string]Note

// ParseNotes reads notes from YAML.
func ParseNotes(text []byte) (Notes, error) {
	var n Notes
	if err := yaml.UnmarshalStrict(text, &n); err != nil {
		return nil, fmt.Errorf("reading the notes on missed targets: %w", err)
	}
	return n, nil
}

// Explain reports whether the notes say why this target of this workload is missed by that much.
func (n Notes) Explain(workload string, t Target) bool {
	note, ok := n[workload][t.Text]
	return ok && !t.Unknown && note.Why != "" && t.Measured <= note.UpTo
}

// Check returns an error if a note is about a target that these sections do not have: it has been renamed, and
// the note with it would be lost. Workloads without a section are not looked at.
func (n Notes) Check(sections []Section) error {
	for _, s := range sections {
		for text := range n[s.Workload] {
			if !slices.ContainsFunc(s.Targets, func(t Target) bool { return t.Text == text }) {
				return fmt.Errorf("the notes on %s explain %q, which is none of its targets", s.Workload, text)
			}
		}
	}
	return nil
}
