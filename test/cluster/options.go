// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// Options says what cluster to start. The zero value is a complete one: built if
// need be, in a folder that Stop removes.
type Options struct {
	// Name is shown by Running, and names the folder. Empty means a made-up one.
	// Two running clusters of one user cannot share a name.
	Name string
	// Dir is the folder for data and logs, absent or empty. It stays after Stop.
	// Empty means a folder in the user's cache, which Stop removes.
	Dir string
	// Keep leaves the folder after Stop.
	Keep bool
	// Data is the DataDir of a cluster that has stopped and kept its folder, to begin with a copy of
	// what that held, its nodes and pods included. Empty means an empty cluster.
	Data string
	// Binaries are the programs to run. The zero value means Build.
	Binaries Binaries
	// Out gets the progress of a build and of the start. Nil means silence.
	Out io.Writer
	// AuditLevel is what the audit log holds of every request: Metadata (the default),
	// Request, RequestResponse or None.
	AuditLevel string
	// Verbosity is the --v of every component that knows it.
	Verbosity int
	// ExtraFlags are added to the command line of a component, after our own.
	ExtraFlags map[Component][]string
	// StartTimeout bounds the start, without a build; 60 s if zero.
	StartTimeout time.Duration

	// pickPorts stands in for freePorts in tests.
	pickPorts func(int) ([]int, error)
}

var nameRule = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// complete fills in defaults and refuses what makes no sense.
func (o Options) complete() (Options, error) {
	if o.Name != "" && !nameRule.MatchString(o.Name) {
		return o, fmt.Errorf("cluster name %q: use up to 63 lower-case letters, digits and inner dashes", o.Name)
	}
	if o.Dir != "" {
		dir, err := filepath.Abs(o.Dir)
		if err != nil {
			return o, fmt.Errorf("cluster folder %q: %w", o.Dir, err)
		}
		o.Dir, o.Keep = dir, true
	}
	if o.Data != "" {
		if _, err := os.Stat(filepath.Join(o.Data, "member")); err != nil {
			return o, fmt.Errorf("cluster data %q: not a data folder of etcd: %w", o.Data, err)
		}
	}
	if o.AuditLevel == "" {
		o.AuditLevel = "Metadata"
	}
	if levels := []string{"None", "Metadata", "Request", "RequestResponse"}; !slices.Contains(levels, o.AuditLevel) {
		return o, fmt.Errorf("audit level %q: use one of %q", o.AuditLevel, levels)
	}
	if o.Verbosity < 0 {
		return o, fmt.Errorf("verbosity %d: must not be negative", o.Verbosity)
	}
	for c := range o.ExtraFlags {
		if !slices.Contains(Components(), c) {
			return o, fmt.Errorf("extra flags for %q: use one of %q", c, Components())
		}
	}
	if o.StartTimeout < 0 {
		return o, fmt.Errorf("start timeout %s: must not be negative", o.StartTimeout)
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 60 * time.Second
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.pickPorts == nil {
		o.pickPorts = freePorts
	}
	return o, nil
}
