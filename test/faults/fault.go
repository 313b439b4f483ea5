// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// fault is one thing that goes wrong.
type fault interface {
	// name is for the command line: lower case, without spaces.
	name() string
	// title says what goes wrong.
	title() string
	// run lets it go wrong on a stage whose operator runs, and mends it. What it leaves under maintenance is
	// checked, and given back, by others. It returns what was survived, in a few words. An error is also that what was
	// to go wrong did not.
	run(ctx context.Context, s *stage) (survived string, err error)
}

// faults returns all, in the order in which they happen.
func faults() []fault {
	return []fault{
		kill{times: 50},
		restartAPIServer{times: 2},
		restartEtcd{times: 2},
		cut{length: 10 * time.Second},
		slow{answer: 500 * time.Millisecond, length: 15 * time.Second},
		dropWatches{every: time.Second, times: 20},
		gone{},
		throttle{nodes: 30},
		killLeader{},
		freezeLeader{},
		webhookDown{},
		wrongCA{},
		expiredCertificate{},
		leaseNamespace{},
		crd{},
		sameName{},
		storm{objects: 200, length: 2 * time.Minute},
	}
}

func listed() string {
	var b strings.Builder
	for _, f := range faults() {
		fmt.Fprintf(&b, "%-14s %s\n", f.name(), f.title())
	}
	return b.String()
}

// choose returns the faults with these names, separated by commas; all of them for none.
func choose(names string) ([]fault, error) {
	if names == "" {
		return faults(), nil
	}
	var out []fault
	for name := range strings.SplitSeq(names, ",") {
		before := len(out)
		for _, f := range faults() {
			if f.name() == name {
				out = append(out, f)
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("there is no fault %q; there are:\n%s", name, listed())
		}
	}
	return out, nil
}
