// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// keptFor are the rights that need not be used in the tests, and what they are granted for.
var keptFor = map[string]string{
	"nodemaintenance.medik8s.io/nodemaintenances delete":                "OpenShift's OwnerReferencesPermissionEnforcement lets only who may delete an object set its owner",
	"apps/daemonsets get":                                               "while their watch does not stand, each is read by itself, and so is one that it does not show",
	"/events patch":                                                     "client-go's recorder counts an event that comes again by a patch of the first",
	"/events patch (in " + deploy.Namespace + ")":                       "so does that of the leader election",
	"/secrets webhook-server-cert create (in " + deploy.Namespace + ")": "an apply, which the log shows as a patch, needs it to create",
}

// use is something that the operator asked for. A right that covers it has the same what and verb.
type use struct{ namespace, what, name, verb string }

// usage is what the operator asked for in the clusters of this run.
type usage struct {
	mu  sync.Mutex
	all map[use]bool
}

var asked = usage{all: map[use]bool{}}

// note adds what the operator has asked for on the cluster of e.
func (u *usage) note(e *env) error {
	log, err := e.Cluster.ReadAudit(cluster.AuditFilter{User: deploy.User})
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range log {
		if r.Resource != "" { // what is no resource everybody may ask for: which resources there are, whether all is well
			u.all[useOf(r)] = true
		}
	}
	return nil
}

func useOf(r cluster.AuditEvent) use {
	what := r.Group + "/" + r.Resource
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	return use{r.Namespace, what, r.Name, r.Verb}
}

// leastPrivilege returns an error unless the operator used every right that the manifests grant it, and nothing else,
// in the tests that have run. A part of them proves nothing, and is not judged.
func leastPrivilege(ctx context.Context, e *env) error {
	if part := flag.Lookup("test.run").Value.String() + flag.Lookup("test.skip").Value.String(); part != "" || testing.Short() {
		return nil
	}
	if err := asked.note(e); err != nil {
		return err
	}
	manifests, err := e.kustomize(ctx)
	if err != nil {
		return err
	}
	rights, err := operatorsRights(manifests)
	if err != nil {
		return err
	}
	var errs []error
	for _, wrong := range compare(rights, slices.Collect(maps.Keys(asked.all)), keptFor) {
		errs = append(errs, errors.New(wrong))
	}
	return errors.Join(errs...)
}

// operatorsRights returns what roles in the manifests grant to the operator.
func operatorsRights(manifests string) ([]use, error) {
	roles, err := granted(manifests)
	if err != nil {
		return nil, err
	}
	var out []use
	for _, r := range roles {
		if !slices.Contains(r.to, operator) {
			continue
		}
		for _, line := range r.rights {
			words := strings.Fields(line)
			u := use{namespace: r.namespace, what: words[0], verb: words[len(words)-1]}
			if len(words) == 3 {
				u.name = words[1]
			}
			out = append(out, u)
		}
	}
	return out, nil
}

// compare says which rights were not used, which uses no right covers, and which reasons are none.
func compare(rights, uses []use, kept map[string]string) []string {
	used := map[use]bool{}
	wrong := map[string]bool{}
	for _, u := range uses {
		by := covering(rights, u)
		if len(by) == 0 {
			wrong["not granted: "+u.String()] = true
		}
		for _, r := range by {
			used[r] = true
		}
	}
	reasons := maps.Clone(kept)
	for _, r := range rights {
		_, reason := kept[r.String()]
		delete(reasons, r.String())
		if !used[r] && !reason {
			wrong["never used: "+r.String()] = true
		}
	}
	for r := range reasons {
		wrong["a reason for what is not granted: "+r] = true
	}
	return slices.Sorted(maps.Keys(wrong))
}

// covering returns the rights that allow u, the narrowest only: what a right for one name or namespace allows is no
// use of the wider one beside it. A watch uses the right to list too: client-go's informers begin with it.
func covering(rights []use, u use) []use {
	var narrow, wide []use
	for _, r := range rights {
		verb := r.verb == u.verb || r.verb == "list" && u.verb == "watch"
		if r.what != u.what || !verb || r.name != "" && r.name != u.name || r.namespace != "" && r.namespace != u.namespace {
			continue
		}
		if r.name != "" || r.namespace != "" {
			narrow = append(narrow, r)
		} else {
			wide = append(wide, r)
		}
	}
	if len(narrow) > 0 {
		return narrow
	}
	return wide
}

func (u use) String() string {
	words := []string{u.what}
	if u.name != "" {
		words = append(words, u.name)
	}
	line := strings.Join(append(words, u.verb), " ")
	if u.namespace != "" {
		line += fmt.Sprintf(" (in %s)", u.namespace)
	}
	return line
}

func TestRightsAreCompared(t *testing.T) {
	everywhere := func(what, name, verb string) use { return use{"", what, name, verb} }
	leases, leasesHere := everywhere("g/leases", "", "update"), use{"here", "g/leases", "", "update"}
	for _, tc := range []struct {
		reason       string
		rights, uses []use
		kept         map[string]string
		want         []string
	}{
		{"all used", []use{leases}, []use{{"there", "g/leases", "n", "update"}}, nil, nil},
		{"one never used", []use{leases}, nil, nil, []string{"never used: g/leases update"}},
		{"kept for a reason", []use{leases}, nil, map[string]string{"g/leases update": "for"}, nil},
		{"kept for a reason, and used", []use{leases}, []use{{"there", "g/leases", "n", "update"}}, map[string]string{"g/leases update": "for"}, nil},
		{"a right that has gone", nil, nil, map[string]string{"g/leases update": "for"}, []string{"a reason for what is not granted: g/leases update"}},
		{"one not granted", nil, []use{{"there", "/pods", "p", "delete"}}, nil, []string{"not granted: /pods p delete (in there)"}},
		{"another verb", []use{leases}, []use{{"", "g/leases", "n", "update"}, {"", "g/leases", "n", "patch"}}, nil, []string{"not granted: g/leases n patch"}},
		{"another name", []use{everywhere("/secrets", "ours", "get")}, []use{{"", "/secrets", "ours", "get"}, {"", "/secrets", "theirs", "get"}}, nil, []string{"not granted: /secrets theirs get"}},
		{"another namespace", []use{leasesHere}, []use{{"here", "g/leases", "n", "update"}, {"there", "g/leases", "n", "update"}}, nil, []string{"not granted: g/leases n update (in there)"}},
		{"the narrow one is used, not the wide one", []use{leases, leasesHere}, []use{{"here", "g/leases", "n", "update"}}, nil, []string{"never used: g/leases update"}},
		{"a watch is a list too", []use{everywhere("/nodes", "", "list"), everywhere("/nodes", "", "watch")}, []use{{"", "/nodes", "", "watch"}}, nil, nil},
		{"a list is no watch", []use{everywhere("/nodes", "", "list"), everywhere("/nodes", "", "watch")}, []use{{"", "/nodes", "", "list"}}, nil, []string{"never used: /nodes watch"}},
	} {
		t.Run(tc.reason, func(t *testing.T) { require.Equal(t, tc.want, compare(tc.rights, tc.uses, tc.kept)) })
	}
}
