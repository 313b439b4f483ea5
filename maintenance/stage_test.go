// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodemaint/nodemaint/lease"
	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

const leaseNS = lease.DefaultNamespace

// stage is a cluster with the node n1, and an Engine that notes the steps it tells.
type stage struct {
	*mt.Cluster
	*maintenance.Engine
	t *testing.T

	mu    sync.Mutex
	steps []maintenance.Step
	told  []maintenance.Transition
	hook  func(maintenance.Transition) error
	ends  []context.CancelFunc
}

// onStage runs f in a bubble, with kube-controller-manager's taint controller.
func onStage(t *testing.T, f func(t *testing.T, s *stage), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := mt.New(mt.Options{Controllers: []mt.Controller{mt.UnschedulableTaint}}, append([]runtime.Object{mt.Node("n1")}, objects...)...)
		s := &stage{Cluster: c, t: t}
		s.restart()
		defer synctest.Wait()
		defer c.Close()
		defer s.leave()
		f(t, s)
	})
}

// restart begins anew with an Engine that remembers nothing.
func (s *stage) restart() {
	s.leave()
	s.Engine = maintenance.New(s.Client(), maintenance.Options{OnTransition: s.onTransition})
}

// leave ends all watches.
func (s *stage) leave() {
	for _, end := range s.ends {
		end()
	}
	s.ends = nil
	synctest.Wait()
}

func (s *stage) onTransition(_ context.Context, tr maintenance.Transition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook != nil {
		if err := s.hook(tr); err != nil {
			return err
		}
	}
	s.steps = append(s.steps, tr.Step)
	s.told = append(s.told, tr)
	return nil
}

// watch watches n1 from here on.
func (s *stage) watch() <-chan struct{} {
	ctx, end := context.WithCancel(s.t.Context())
	s.ends = append(s.ends, end)
	wakes, err := s.Watch(ctx, "n1")
	require.NoError(s.t, err)
	synctest.Wait()
	return wakes
}

// start makes one pass that must be possible, and lets what follows from it play out.
func (s *stage) start(prior maintenance.State) maintenance.State {
	s.t.Helper()
	next, err := s.Start(s.t.Context(), "n1", prior)
	require.NoError(s.t, err)
	synctest.Wait()
	return next
}

// failing is what a Start returns now that cannot be made.
func failing(prior maintenance.State, err error) maintenance.State {
	want := prior.Failing(err)
	want.Updated = time.Now()
	return want
}

// stop stops the maintenance of n1.
func (s *stage) stop() maintenance.Restored {
	s.t.Helper()
	r, err := s.Stop(s.t.Context(), "n1")
	require.NoError(s.t, err)
	synctest.Wait()
	return r
}

// until makes passes until a state is in that phase, each when the one before says.
func (s *stage) until(prior maintenance.State, phase maintenance.Phase) maintenance.State {
	s.t.Helper()
	for range 100 {
		if prior = s.start(prior); prior.Phase == phase {
			return prior
		}
		advance(max(prior.RetryAfter, time.Millisecond))
	}
	require.Fail(s.t, "never "+string(phase), "%+v", prior)
	return prior
}

// deeds says in short what was written, in order.
func (s *stage) deeds() []string {
	out := []string{}
	for _, r := range s.Writes() {
		out = append(out, deed(r))
	}
	return out
}

func deed(r mt.Request) string {
	switch r.Resource {
	case "nodes":
		var body struct {
			Metadata struct{ Annotations, Labels map[string]*string }
			Spec     map[string]json.RawMessage
		}
		if err := json.Unmarshal(r.Patch, &body); err != nil {
			return err.Error()
		}
		var parts []string
		for _, v := range body.Metadata.Annotations {
			parts = append(parts, sign(v != nil)+"record")
		}
		for _, v := range body.Metadata.Labels {
			parts = append(parts, sign(v != nil)+"label")
		}
		if _, ok := body.Spec["taints"]; ok {
			parts = append(parts, "taints")
		}
		if v, ok := body.Spec["unschedulable"]; ok {
			parts = append(parts, sign(string(v) == "true")+"cordon")
		}
		return strings.Join(parts, " ")
	case "pods":
		return "evict " + r.Name
	default:
		return r.Verb + " " + strings.TrimSuffix(r.Resource, "s")
	}
}

func sign(on bool) string {
	if on {
		return "+"
	}
	return "-"
}

// looks is what the node looks like: labels, annotations and spec, but for when the controller added its taint.
func looks(n *corev1.Node) string {
	n = n.DeepCopy()
	for i := range n.Spec.Taints {
		if n.Spec.Taints[i].Key == corev1.TaintNodeUnschedulable {
			n.Spec.Taints[i].TimeAdded = nil
		}
	}
	text, err := json.MarshalIndent(map[string]any{"uid": n.UID, "labels": fmt.Sprint(n.Labels), "annotations": fmt.Sprint(n.Annotations), "spec": n.Spec}, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (s *stage) record() string { return s.Node("n1").Annotations[maintenance.RecordAnnotation] }

// advance lets the bubble's time pass.
func advance(d time.Duration) { <-time.After(d) }
