// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir is the folder of the documents: benchmarks.md, and beside it benchmarks/ with the sections, the notes and
// the chart.
type Dir string

func (d Dir) in(name string) string { return filepath.Join(string(d), "benchmarks", name) }

// Save keeps a section in place of an earlier one of that workload.
func (d Dir) Save(s Section) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("keeping the results of %s: %w", s.Workload, err)
	}
	return d.write(d.in(s.Workload+".json"), append(text, '\n'))
}

// Sections returns all sections that are kept, in order of their names.
func (d Dir) Sections() ([]Section, error) {
	paths, err := filepath.Glob(d.in("W*.json"))
	if err != nil {
		return nil, err
	}
	var out []Section
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			return nil, fmt.Errorf("reading kept results: %w", err)
		}
		var s Section
		if err := json.Unmarshal(text, &s); err != nil {
			return nil, fmt.Errorf("reading kept results in %s: %w", filepath.Base(p), err)
		}
		out = append(out, s)
	}
	return out, nil
}

// Notes returns the notes; none if there is no such file.
func (d Dir) Notes() (Notes, error) {
	text, err := os.ReadFile(d.in("notes.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the notes on missed targets: %w", err)
	}
	return ParseNotes(text)
}

// Render writes the page and the chart from the sections that are kept.
func (d Dir) Render() error {
	sections, err := d.Sections()
	if err != nil {
		return err
	}
	notes, err := d.Notes()
	if err != nil {
		return err
	}
	svg, err := Chart(sections)
	if err != nil {
		return err
	}
	chart := ""
	if svg != nil {
		chart = "benchmarks/chart.svg"
		if err := d.write(d.in("chart.svg"), svg); err != nil {
			return err
		}
	}
	page := Page(sections, notes, chart)
	return errors.Join(d.write(filepath.Join(string(d), "benchmarks.md"), []byte(page)), notes.Check(sections))
}

func (d Dir) write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making the folder of the results: %w", err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}
