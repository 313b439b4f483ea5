// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/test/cluster"
)

// A pinned pod is bound to its node when it is made, and nobody replaces it when it goes. So the load is the same
// at all times, however often a node is drained.

func pinned(name, node, app string, goneAfter time.Duration) *corev1.Pod {
	t := template(app)
	p := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	p.Namespace, p.Name, p.Spec.NodeName = namespace, name, node
	p.Annotations[cluster.GoneAfterAnnotation] = goneAfter.String()
	return p
}

// closedBudget lets none of the pods of an app go, which are so many.
func closedBudget(app string, pods int) *policyv1.PodDisruptionBudget {
	b := budget(app, intstr.FromInt32(0))
	b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, new(intstr.FromInt(pods)) // pods without an owner can only be counted so
	return b
}

// closeBudgets makes a closed budget for each of these apps and waits until all have counted their pods.
func (s *stage) closeBudgets(ctx context.Context, pods map[string]int) error {
	for app, n := range pods {
		if err := s.Create(ctx, closedBudget(app, n)); err != nil {
			return err
		}
	}
	return s.settle(ctx, pods)
}

// awaitRunning waits until kwok has made all pods run.
func (s *stage) awaitRunning(ctx context.Context, pods int) error {
	running := s.counting("pods run")
	err := wait.PollUntilContextTimeout(ctx, 2*time.Second, 15*time.Minute, true, func(ctx context.Context) (bool, error) {
		pending := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		err := s.List(ctx, &pending, client.InNamespace(namespace), client.MatchingFields{"status.phase": string(corev1.PodPending)})
		running(pods-len(pending.Items), pods)
		return len(pending.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting for pods to run: %w", err)
	}
	return nil
}

// openBudget lets every pod of an app go.
func (s *stage) openBudget(ctx context.Context, app string) error {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app}}
	return s.Patch(ctx, b, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minAvailable":0}}`)))
}

// addPinned adds nodes with so many pinned pods each, which take so long to go.
func (s *stage) addPinned(ctx context.Context, nodes, perNode int, goneAfter func(node int) time.Duration) error {
	var err error
	if s.nodes, err = s.Cluster.AddNodes(ctx, nodes, cluster.NodeOptions{Prefix: "drained-"}); err != nil {
		return err
	}
	for i, n := range s.nodes {
		for j := range perNode {
			if err := s.Create(ctx, pinned(fmt.Sprintf("%s-%d", n, j), n, appOf(i), goneAfter(i))); err != nil {
				return err
			}
		}
	}
	return s.awaitRunning(ctx, nodes*perNode)
}

func appOf(node int) string { return fmt.Sprintf("app-%d", node) }
