// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// State is what is written down of a running cluster for other processes.
type State struct {
	Name       string    `json:"name"`
	Dir        string    `json:"dir"`
	Owner      int       `json:"owner"` // the process that Stop or a signal to it ends the cluster with
	Started    time.Time `json:"started"`
	Keep       bool      `json:"keep"`
	Kubeconfig string    `json:"kubeconfig"`
	Kubectl    string    `json:"kubectl"`
	Parts      []Part    `json:"parts"`
}

// Part is one process of a running cluster.
type Part struct {
	Component Component `json:"component"`
	PID       int       `json:"pid"`
	HealthURL string    `json:"healthURL"`
	Log       string    `json:"log"`
}

func readState(dir string) (State, error) {
	data, err := os.ReadFile(layout{dir}.state())
	if err != nil {
		return State{}, fmt.Errorf("reading state of cluster in %s: %w", dir, err)
	}
	var s State
	if err := json.Unmarshal(data, &s); err != nil {
		return State{}, fmt.Errorf("reading state of cluster in %s: %w", dir, err)
	}
	return s, nil
}

// write puts the state into the cluster's folder in one step.
func (s State) write() error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding state of cluster %s: %w", s.Name, err)
	}
	path := layout{s.Dir}.state()
	if err := os.WriteFile(path+".tmp", data, 0o600); err != nil {
		return fmt.Errorf("writing state of cluster %s: %w", s.Name, err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("writing state of cluster %s: %w", s.Name, err)
	}
	return nil
}

// Running lists this user's clusters whose owners live, started without Options.Dir.
func Running() ([]State, error) {
	run, err := runDir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(run)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	var out []State
	for _, e := range entries {
		s, err := readState(filepath.Join(run, e.Name()))
		if err == nil && s.alive() {
			out = append(out, s)
		}
	}
	return out, nil
}

// alive reports whether the owner holds the cluster's lock. A process id alone
// proves nothing: ids are used again.
func (s State) alive() bool { return locked(layout{s.Dir}.lock()) }

// Ended waits until the owner of the cluster is gone.
func (s State) Ended(ctx context.Context) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for s.alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for cluster %s to end: %w", s.Name, context.Cause(ctx))
		case <-ticker.C:
		}
	}
	return nil
}

// Health asks every part of the cluster how it is. The error of a part that is
// well is nil.
func (s State) Health(ctx context.Context) (map[Component]error, error) {
	client, err := newHealthClient(layout{s.Dir}.pki())
	if err != nil {
		return nil, err
	}
	out := map[Component]error{}
	for _, p := range s.Parts {
		out[p.Component] = client.check(ctx, p.HealthURL)
	}
	return out, nil
}
