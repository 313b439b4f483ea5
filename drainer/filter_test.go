// SPDX-License-Identifier: Apache-2.0

package drainer_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/drain"

	"github.com/nodemaint/nodemaint/drainer"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestWhichPodsLeave(t *testing.T) {
	custom := func(verdict func() drain.PodDeleteStatus) drainer.Options {
		return drainer.Options{Filters: []drain.PodFilter{func(p corev1.Pod) drain.PodDeleteStatus {
			if p.Name != "p" {
				return drain.MakePodDeleteStatusOkay()
			}
			return verdict()
		}}}
	}
	keep := drainer.Options{KeepUnmanaged: true, KeepEmptyDir: true}
	for _, tt := range []struct {
		reason string
		pod    []mt.PodOption
		o      drainer.Options
		fault  error // of reading DaemonSets
		list   string
		words  string
	}{
		{reason: "a ReplicaSet's", pod: []mt.PodOption{mt.OfReplicaSet("web")}, list: "leaving"},
		{reason: "an unmanaged one", list: "leaving"},
		{reason: "one with an emptyDir", pod: []mt.PodOption{mt.EmptyDir()}, list: "leaving"},
		{reason: "a finished one", pod: []mt.PodOption{mt.Phase(corev1.PodSucceeded)}, list: "leaving"},
		{reason: "a failed one", pod: []mt.PodOption{mt.Phase(corev1.PodFailed)}, list: "leaving"},
		{reason: "a mirror of a static pod", pod: []mt.PodOption{mt.Mirror()}, list: "staying"},
		{reason: "a DaemonSet's", pod: []mt.PodOption{mt.OfDaemonSet("agent")}, list: "staying", words: "ignoring DaemonSet-managed Pods: shop/p"},
		{reason: "a finished one of a DaemonSet that exists", pod: []mt.PodOption{mt.OfDaemonSet("agent"), mt.Phase(corev1.PodFailed)}, list: "staying"},
		{reason: "a DaemonSet's, of which nothing is left", pod: []mt.PodOption{mt.OfDaemonSet("lost")}, list: "leaving"},
		{reason: "a finished one of a DaemonSet that is gone", pod: []mt.PodOption{mt.OfDaemonSet("lost"), mt.Phase(corev1.PodFailed)}, list: "leaving"},
		{reason: "a DaemonSet's that cannot be read", pod: []mt.PodOption{mt.OfDaemonSet("agent")}, fault: errors.New("etcd is sad"), list: "failed", words: "etcd is sad"},
		{reason: "a finished one of a DaemonSet that cannot be read", pod: []mt.PodOption{mt.OfDaemonSet("agent"), mt.Phase(corev1.PodFailed)}, fault: errors.New("etcd is sad"), list: "failed", words: "getting DaemonSet shop/agent: etcd is sad"},
		{reason: "an unmanaged one is kept if asked", o: keep, list: "blocked", words: "declare no controller"},
		{reason: "one with an emptyDir is kept if asked", pod: []mt.PodOption{mt.OfReplicaSet("web"), mt.EmptyDir()}, o: keep, list: "blocked", words: "local storage"},
		{reason: "an orphan of a DaemonSet is kept if asked", pod: []mt.PodOption{mt.OfDaemonSet("lost")}, o: keep, list: "blocked", words: `"lost" not found`},
		{reason: "a managed one leaves all the same", pod: []mt.PodOption{mt.OfReplicaSet("web")}, o: keep, list: "leaving"},
		{reason: "a finished one too", pod: []mt.PodOption{mt.EmptyDir(), mt.Phase(corev1.PodSucceeded)}, o: keep, list: "leaving"},
		{reason: "a filter of the caller's lets it go", o: custom(drain.MakePodDeleteStatusOkay), list: "leaving"},
		{reason: "a filter of the caller's skips it", o: custom(drain.MakePodDeleteStatusSkip), list: "staying"},
		{reason: "a filter of the caller's refuses it", o: custom(func() drain.PodDeleteStatus {
			return drain.MakePodDeleteStatusWithError("not on Fridays")
		}), list: "blocked", words: "not on Fridays"},
	} {
		for _, mode := range []string{"listed", "watched"} {
			t.Run(tt.reason+", "+mode, func(t *testing.T) {
				onStage(t, mt.Options{Termination: mt.Never}, tt.o, func(t *testing.T, s *stage) {
					if tt.fault != nil {
						for _, verb := range []string{"get", "list", "watch"} {
							s.Fail(mt.On(verb, "daemonsets"), tt.fault)
						}
					}
					if mode == "watched" {
						s.watch("n1")
					}
					plan, err := s.Plan(t.Context(), "n1")
					require.NoError(t, err)
					require.Empty(t, s.Writes(), "a plan touches nothing")

					r := s.pass("n1")

					require.Equal(t, tt.list, where(r)["shop/p"])
					require.Equal(t, "leaving", where(r)["shop/other"], "the others leave")
					require.Equal(t, 2, r.Total())
					require.Equal(t, tt.list == "staying", len(r.Pending()) == 1)
					for _, list := range [][]drainer.Pod{r.Blocked, r.Failed, r.Staying} {
						for _, p := range list {
							require.Contains(t, p.Reason, tt.words)
						}
					}
					want := tt.list
					if want == "leaving" {
						want = "deferred"
					}
					require.Equal(t, want, where(plan)["shop/p"], "a plan says the same")
					require.Equal(t, names(r.Pending()), names(plan.Pending()))
					require.Zero(t, plan.RetryAfter)
				}, mt.DaemonSet("shop", "agent"), mt.Pod("shop", "p", "n1", tt.pod...),
					mt.Pod("shop", "other", "n1", mt.OfReplicaSet("web")), mt.Pod("shop", "elsewhere", "n2"))
			})
		}
	}
}
