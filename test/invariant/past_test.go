// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodemaint/nodemaint/test/cluster"
)

const (
	us   = "the operator"
	them = "somebody else"
)

// logged makes requests out of lines such as "create leases node-n 201", by us unless a line begins with "they" or
// with the name of a credential of ours, one a second.
func logged(lines ...string) []cluster.AuditEvent {
	codes := map[string]int{"200": 200, "201": 201, "404": 404, "409": 409, "429": 429, "500": 500, "-": 0}
	var out []cluster.AuditEvent
	for i, line := range lines {
		e := cluster.AuditEvent{User: us, Namespace: "ns", Time: time.Unix(int64(i), 0)}
		words := strings.Fields(line)
		switch words[0] {
		case "they":
			e.User, words = them, words[1:]
		case "A", "B":
			e.Credential, words = words[0], words[1:]
		}
		e.Verb, e.Name, e.Code = words[0], words[2], codes[words[3]]
		e.Resource, e.Subresource, _ = strings.Cut(words[1], "/")
		out = append(out, e)
	}
	return out
}

func TestEvictions(t *testing.T) {
	nodeOf := func(_, pod string) string { n, _, _ := strings.Cut(pod, "--"); return n }
	const (
		made, adopted, leased  = "they create nodemaintenances n 201", "patch nodemaintenances n 200", "create leases node-n 201"
		evicted                = "create pods/eviction n--0 201"
		deleted, released, end = "they delete nodemaintenances n 200", "delete leases node-n 200", "patch nodemaintenances n 200"
	)
	for _, tc := range []struct {
		reason string
		log    []string
		wrong  string
	}{
		{"one maintenance", []string{made, adopted, leased, evicted, deleted, released, end}, ""},
		{"one that takes its time to go", []string{made, adopted, leased, deleted, evicted, released, end}, ""},
		{"one after another", []string{made, adopted, leased, evicted, deleted, released, end, made, adopted, leased, evicted}, ""},
		{"status and failed writes end nothing", []string{made, adopted, "patch nodemaintenances/status n 200", "patch nodemaintenances n 409", leased, evicted}, ""},
		{"made without an answer", []string{"they create nodemaintenances n 500", adopted, leased, evicted}, ""},
		{"made without being logged", []string{"they create nodemaintenances n 409", adopted, leased, evicted}, ""},
		{"a lease made without an answer", []string{made, adopted, "create leases node-n 500", evicted}, ""},
		{"others evict as they like", []string{"they create pods/eviction n--0 201"}, ""},
		{"another's attempt to take the lease fails", []string{made, adopted, leased, "they update leases node-n 409", evicted}, ""},
		{"deleted as it was adopted", []string{made, deleted, adopted, leased, evicted}, ""},
		{"without an object", []string{leased, evicted}, "had no NodeMaintenance"},
		{"after its end", []string{made, adopted, leased, deleted, end, evicted}, "had no NodeMaintenance"},
		{"after the end of one that was never ours", []string{made, deleted, leased, evicted}, "had no NodeMaintenance"},
		{"refused ones count too", []string{made, adopted, leased, deleted, end, "create pods/eviction n--0 429"}, "had no NodeMaintenance"},
		{"for another node", []string{made, adopted, leased, "create leases node-m 201", "create pods/eviction m--0 201"}, `node "m" had no`},
		{"without a lease", []string{made, adopted, evicted}, "the lease of node \"n\" was not ours"},
		{"a refused lease", []string{made, adopted, "create leases node-n 409", evicted}, "was not ours"},
		{"the lease released", []string{made, adopted, leased, released, evicted}, "was not ours"},
		{"the lease deleted by another", []string{made, adopted, leased, "they delete leases node-n 200", evicted}, "was not ours"},
		{"the lease taken", []string{made, adopted, leased, "they update leases node-n 200", evicted}, "was not ours"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := Evictions(logged(tc.log...), us, nodeOf)
			if tc.wrong == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Contains(t, got[0].String(), tc.wrong)
		})
	}
	backwards := logged(made, adopted, leased, evicted)
	backwards[0], backwards[3] = backwards[3], backwards[0]
	require.Empty(t, Evictions(backwards, us, nodeOf), "the log is not sorted by when requests came in")
}

func TestOneLeader(t *testing.T) {
	const lead = "leases the-lease 200"
	for _, tc := range []struct {
		reason string
		log    []string
		wrong  string
	}{
		{"it leads", []string{"A update " + lead, "A create pods/eviction p 201", "A patch nodes n 200"}, ""},
		{"another follows", []string{"A update " + lead, "B update leases the-lease 409", "B get leases the-lease 200", "A patch nodes n 200"}, ""},
		{"they take turns", []string{"A update " + lead, "B update " + lead, "B patch nodes n 200", "A update " + lead, "A patch nodes n 200"}, ""},
		{"who does not lead may look", []string{"A update " + lead, "B get nodes n 200", "B create events e 201"}, ""},
		{"nobody ever led", []string{"A patch nodes n 200"}, ""},
		{"another's lease", []string{"A update " + lead, "B update leases node-n 200", "A patch nodes n 200"}, ""},
		{"others do as they like", []string{"A update " + lead, "they patch nodes n 200"}, ""},
		{"it evicts though another leads", []string{"A update " + lead, "B update " + lead, "A create pods/eviction p 404"}, "by A, while B led"},
		{"it writes a node though another leads", []string{"A update " + lead, "B create " + lead, "A patch nodes n 409"}, "by A, while B led"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := OneLeader(logged(tc.log...), us, "ns", "the-lease")
			if tc.wrong == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Contains(t, got[0].String(), tc.wrong)
		})
	}
}
