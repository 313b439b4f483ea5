// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
	"github.com/nodemaint/nodemaint/test/invariant"
	"github.com/nodemaint/nodemaint/test/program"
)

func plainNode() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"l": "v"}}}
}

// stageOf is a stage without a cluster, whose one node looks as it has to.
func stageOf(funcs interceptor.Funcs) *Stage {
	c := fake.NewClientBuilder().WithScheme(deploy.Scheme()).WithObjects(plainNode()).WithInterceptorFuncs(funcs).Build()
	s := &Stage{Client: c, looks: newLooks(), audit: func() ([]cluster.AuditEvent, error) { return nil, nil }}
	s.looks.set("n", invariant.LookOf(plainNode()))
	return s
}

func TestWatchdog(t *testing.T) {
	cordon := func(t *testing.T, s *Stage) {
		n := plainNode()
		require.NoError(t, s.Get(t.Context(), client.ObjectKeyFromObject(n), n))
		n.Spec.Unschedulable = true
		require.NoError(t, s.Update(t.Context(), n))
	}
	// went is the log of an object for the node that went in the moment in which it got its finalizer.
	went := func() ([]cluster.AuditEvent, error) {
		now := time.Now()
		return []cluster.AuditEvent{
			{Verb: "delete", Resource: "nodemaintenances", Name: "n", Code: 200, Time: now.Add(-5 * time.Second), Answered: now},
			{Verb: "patch", Resource: "nodemaintenances", Name: "n", Code: 200, Time: now.Add(-4 * time.Second), Answered: now, User: deploy.User},
			{Verb: "delete", Resource: "leases", Name: "node-n", Code: 200, Time: now, Answered: now.Add(time.Second), User: deploy.User},
		}, nil
	}
	unreadable := func() ([]cluster.AuditEvent, error) { return nil, errBroken }
	away := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("the API server is away")
	}}
	for _, tc := range []struct {
		reason string
		funcs  interceptor.Funcs
		audit  func() ([]cluster.AuditEvent, error)
		happen func(t *testing.T, s *Stage)
		want   error
		words  string
	}{
		{reason: "nothing is broken", happen: func(*testing.T, *Stage) {}},
		{reason: "a change that is noted", happen: func(t *testing.T, s *Stage) {
			require.NoError(t, s.Touch(t.Context(), Node{Name: "n"}, "x"))
		}},
		{reason: "a change that is not", want: errBroken, words: "n: without a NodeMaintenance it does not look as before", happen: cordon},
		{reason: "a node whose object went as nobody can prevent", audit: went, happen: cordon},
		{reason: "a log that cannot be read explains nothing", audit: unreadable, want: errBroken, words: "n: without a NodeMaintenance it does not look as before", happen: cordon},
		{reason: "one who never sees anything proves nothing", funcs: away, want: errNeverLooked, words: "never looked at", happen: func(*testing.T, *Stage) {}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := stageOf(tc.funcs)
			if tc.audit != nil {
				s.audit = tc.audit
			}
			synctest.Test(t, func(t *testing.T) {
				w := s.Watch(t.Context())
				tc.happen(t, s)
				require.NoError(t, program.Pause(t.Context(), 10*lookEvery))
				looks, err := w.End()
				require.ErrorIs(t, err, tc.want)
				if tc.want == nil {
					require.Equal(t, 11, looks)
					return
				}
				require.ErrorContains(t, err, tc.words)
			})
		})
	}
}

func TestUntil(t *testing.T) {
	failed := errors.New("not yet")
	for _, tc := range []struct {
		reason string
		f      func(tries int) error
		want   error
		after  time.Duration
	}{
		{"at once", func(int) error { return nil }, nil, 0},
		{"in the end", func(tries int) error {
			if tries < 4 {
				return failed
			}
			return nil
		}, nil, 3 * time.Second},
		{"never", func(int) error { return failed }, failed, Patience},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, tries := time.Now(), 0
				err := until(t.Context(), time.Second, "it", func(context.Context) error { tries++; return tc.f(tries) })
				require.ErrorIs(t, err, tc.want)
				require.Equal(t, tc.after, time.Since(began))
			})
		})
	}
	over := errors.New("over")
	ctx, end := context.WithCancelCause(t.Context())
	end(over)
	require.ErrorIs(t, until(ctx, time.Hour, "it", func(context.Context) error { return failed }), over)
	require.ErrorIs(t, program.Pause(ctx, time.Hour), over)
}

// Whoever is told to end may be in the middle of anything, and no error comes of that.
func TestWhileEndsWithWhatGoesOn(t *testing.T) {
	s := stageOf(interceptor.Funcs{})
	failed := errors.New("it failed")
	synctest.Test(t, func(t *testing.T) {
		for _, want := range []error{nil, failed} {
			err := s.While(t.Context(), []Node{{Name: "n", Pods: 1}}, func(ctx context.Context) error {
				_ = program.Pause(ctx, 3*time.Second) // the operator that would let its object go does not run
				return want
			})
			require.ErrorIs(t, err, want)
		}
	})
}

func TestBrokenTellsNoMoreThanPeopleRead(t *testing.T) {
	require.NoError(t, broken(nil))
	all := make([]invariant.Breach, most+3)
	require.ErrorContains(t, broken(all), "and 3 more")
	require.NotContains(t, broken(all[:most]).Error(), "more")
}
