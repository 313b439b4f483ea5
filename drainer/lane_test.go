// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/clock"
)

// A pass that read a budget before it changed does not bring its lane back to what was.
func TestLaneKnowsABudgetAsItIs(t *testing.T) {
	version := func(v string, allowed int32) *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{}
		b.UID, b.ResourceVersion, b.Status.DisruptionsAllowed = "budget", v, allowed
		return b
	}
	old, now := version("1", 0), version("2", 2)
	l := newLanes(newCalls(2), clock.RealClock{}, func(*policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget { return now })
	ran := make(chan string, 2)
	add := func(name string) *ticket {
		pod := &corev1.Pod{}
		pod.Name = name
		t := &ticket{node: "n", pod: pod, rests: func() {}, call: call{run: func() { ran <- name }, dropped: func() {}}}
		l.add(old, t)
		return t
	}
	first := add("first")
	require.Equal(t, "first", <-ran)
	l.landed("budget", first, accepted)
	add("next")
	require.Equal(t, "next", <-ran, "it allows two by now")
}
