// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// film holds every state that an object goes through from when it was begun.
type film[T client.Object] struct {
	version func() string // of the object as it is; empty if it is gone

	mu     sync.Mutex
	states []T
	gone   bool // the last state is that of an object that was deleted
}

func (e *env) filmNode(t *testing.T, name string) *film[*corev1.Node] {
	t.Helper()
	return filmed[*corev1.Node](t, e, &corev1.NodeList{}, name)
}

func (e *env) filmMaintenance(t *testing.T, name string) *film[*v1beta1.NodeMaintenance] {
	t.Helper()
	return filmed[*v1beta1.NodeMaintenance](t, e, &v1beta1.NodeMaintenanceList{}, name)
}

func filmed[T client.Object](t *testing.T, e *env, list client.ObjectList, name string) *film[T] {
	t.Helper()
	c, err := client.NewWithWatch(e.Cluster.RESTConfig(), client.Options{Scheme: deploy.Scheme()})
	require.NoError(t, err)
	w, err := c.Watch(t.Context(), list, client.MatchingFields{"metadata.name": name})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	f := &film[T]{version: func() string {
		now := list.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // a copy of a list is one
		require.NoError(t, c.List(t.Context(), now, client.MatchingFields{"metadata.name": name}))
		version := ""
		require.NoError(t, meta.EachListItem(now, func(o runtime.Object) error {
			version = o.(client.Object).GetResourceVersion() //nolint:forcetypeassert // so is what is in it an object
			return nil
		}))
		return version
	}}
	go func() {
		for ev := range w.ResultChan() {
			if o, ok := ev.Object.(T); ok {
				f.mu.Lock()
				f.states, f.gone = append(f.states, o), ev.Type == watch.Deleted
				f.mu.Unlock()
			}
		}
	}()
	return f
}

// soFar returns the states that were seen.
func (f *film[T]) soFar() (states []T, gone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.states), f.gone
}

// all returns all states up to now: it waits for the watch to show the object as it is.
func (f *film[T]) all(t *testing.T) []T {
	t.Helper()
	now := f.version()
	require.True(t, waitFor(func() bool {
		states, gone := f.soFar()
		return gone || slices.ContainsFunc(states, func(o T) bool { return o.GetResourceVersion() == now })
	}, patience), "waiting for the watch to show what there is")
	states, _ := f.soFar()
	return states
}

// first waits for the first state that is as asked for, and returns it with those before it.
func (f *film[T]) first(t *testing.T, what string, cond func(T) bool) (T, []T) {
	t.Helper()
	var at int
	require.True(t, waitFor(func() bool {
		states, _ := f.soFar()
		at = slices.IndexFunc(states, cond)
		return at >= 0
	}, patience), "waiting for a state: %s", what)
	states, _ := f.soFar()
	return states[at], states[:at]
}

// phases returns the phases that an object went through, each once for as long as it lasted.
func phases(t *testing.T, f *film[*v1beta1.NodeMaintenance]) []v1beta1.MaintenancePhase {
	t.Helper()
	var out []v1beta1.MaintenancePhase
	for _, nm := range f.all(t) {
		out = append(out, nm.Status.Phase)
	}
	return slices.Compact(out)
}

// requests returns the operator's requests that changed something and succeeded, in their order, as
// "verb resource/subresource name", as far as keep keeps them.
func (e *env) requests(t *testing.T, since time.Time, keep func(cluster.AuditEvent) bool) []string {
	t.Helper()
	events, err := e.Cluster.ReadAudit(cluster.AuditFilter{User: deploy.User, Since: since})
	require.NoError(t, err)
	var out []string
	for _, ev := range events {
		if !slices.Contains([]string{"create", "update", "patch", "delete"}, ev.Verb) || ev.Code >= 300 || !keep(ev) {
			continue
		}
		what := ev.Resource
		if ev.Subresource != "" {
			what += "/" + ev.Subresource
		}
		out = append(out, ev.Verb+" "+what+" "+ev.Name)
	}
	return out
}

// about keeps the requests for a node, its lease, its object and that object's events.
func about(nm *v1beta1.NodeMaintenance) func(cluster.AuditEvent) bool {
	node := nm.Spec.NodeName
	return func(ev cluster.AuditEvent) bool {
		return ev.Name == node || ev.Name == "node-"+node || ev.Name == nm.Name || strings.HasSuffix(ev.Name, string(nm.UID))
	}
}

// nodeWrites returns how often the operator has written the node.
func (e *env) nodeWrites(t *testing.T, node string, since time.Time) int {
	t.Helper()
	return len(e.requests(t, since, func(ev cluster.AuditEvent) bool { return ev.Resource == "nodes" && ev.Name == node }))
}

// passed makes the operator look at an object once more, by a new reason, and waits until it has.
func (e *env) passed(t *testing.T, nm *v1beta1.NodeMaintenance) *v1beta1.NodeMaintenance {
	t.Helper()
	now := e.read(t, nm)
	now.Spec.Reason += "."
	patch := client.MergeFrom(e.read(t, nm))
	require.NoError(t, e.Patch(t.Context(), now, patch))
	return e.until(t, nm, "seen anew", func(s v1beta1.NodeMaintenanceStatus) bool { return s.ObservedGeneration == now.Generation })
}
