// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/maintenance"
	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/invariant"
)

// Node is a node of a stage, with so many pods.
type Node struct {
	Name string
	Pods int
	// Budgeted says that its pods have a budget, which Forbid closes.
	Budgeted bool
}

// podInfix stands between a node's name and a pod's number in the name of the pod.
const podInfix = "--"

// nodeOf returns the node that a pod of a stage is on.
func nodeOf(_, pod string) string {
	n, _, _ := strings.Cut(pod, podInfix)
	return n
}

// AddNodes adds nodes with their pods. They begin differently: some cordoned, some with a taint or a label of the
// kind that a maintenance puts on them; every third has a budget.
func (s *Stage) AddNodes(ctx context.Context, prefix string, n, pods int) ([]Node, error) {
	s.Say("adding %d nodes of %d pods", n, pods)
	var out []Node
	for i := range kinds() {
		names, err := s.addKind(ctx, prefix, n, i)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			out = append(out, Node{Name: name, Pods: pods, Budgeted: len(out)%3 == 0})
		}
	}
	for _, node := range out {
		if err := s.furnishNode(ctx, node); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addKind adds the share of n nodes that begin in one way.
func (s *Stage) addKind(ctx context.Context, prefix string, n, i int) ([]string, error) {
	k := kinds()[i]
	share := (n + len(kinds()) - 1 - i) / len(kinds())
	labels := oldLabels()
	maps.Copy(labels, k.labels)
	names, err := s.Cluster.AddNodes(ctx, share, cluster.NodeOptions{Prefix: fmt.Sprintf("%s-%s-", prefix, k.name), Labels: labels, Taints: k.taints})
	if err != nil || !k.cordoned {
		return names, err
	}
	for _, name := range names {
		cordon := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`))
		if err := s.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, cordon); err != nil {
			return nil, fmt.Errorf("cordoning node %q: %w", name, err)
		}
	}
	return names, nil
}

// kind is a way in which a node begins.
type kind struct {
	name     string
	cordoned bool
	labels   map[string]string
	taints   []corev1.Taint
}

func kinds() []kind {
	foreign := func(key string) []corev1.Taint {
		return []corev1.Taint{{Key: key, Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	}
	return []kind{
		{name: "plain"},
		{name: "cordoned", cordoned: true},
		{name: "drained", taints: foreign("medik8s.io/drain")},
		{name: "labelled", labels: map[string]string{maintenance.ExcludeLabel: "false"}},
		{name: "excluded", labels: map[string]string{maintenance.ExcludeLabel: "true"}, taints: foreign("example.com/dedicated")},
	}
}

// furnishNode puts the pods on a node, and notes how it looks.
func (s *Stage) furnishNode(ctx context.Context, n Node) error {
	if err := s.noteLook(ctx, n); err != nil {
		return err
	}
	return s.Fill(ctx, n)
}

// MakeAgain deletes a node and makes another of the same name, which begins plain.
func (s *Stage) MakeAgain(ctx context.Context, n Node) error {
	s.looks.forget(n.Name)
	if err := s.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}); err != nil {
		return fmt.Errorf("deleting node %q: %w", n.Name, err)
	}
	if err := s.Cluster.AddNode(ctx, n.Name, cluster.NodeOptions{Labels: oldLabels()}); err != nil {
		return err
	}
	if err := s.noteLook(ctx, n); err != nil {
		return err
	}
	return s.looks.during(func(all map[string]invariant.Look) error {
		if l := all[n.Name]; l.Unschedulable || len(l.Taints) > 0 || l.Annotations[maintenance.RecordAnnotation] != "" {
			return fmt.Errorf("%w: node %q: %+v", errTaken, n.Name, l)
		}
		return nil
	})
}

var errTaken = errors.New("a new node was taken for the one before")

// noteLook notes how the node looks now, which is not under maintenance.
func (s *Stage) noteLook(ctx context.Context, n Node) error {
	var now corev1.Node
	if err := s.Get(ctx, client.ObjectKey{Name: n.Name}, &now); err != nil {
		return fmt.Errorf("getting node %q: %w", n.Name, err)
	}
	s.looks.set(n.Name, invariant.LookOf(&now))
	return nil
}

// oldLabels are what kube-controller-manager would add to a node some time later.
func oldLabels() map[string]string {
	return map[string]string{"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64"}
}

// Fill sees to it that all pods of the node are there.
func (s *Stage) Fill(ctx context.Context, n Node) error {
	for i := range n.Pods {
		err := s.Until(ctx, fmt.Sprintf("pod %d of node %q", i, n.Name), func(ctx context.Context) error {
			p := podOf(n, i)
			err := s.Create(ctx, p)
			if !apierrors.IsAlreadyExists(err) {
				return err
			}
			if err := s.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
				return err
			}
			if p.DeletionTimestamp != nil {
				return errGoing
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var errGoing = errors.New("one of that name is still going")

// podOf returns a pod that is bound to its node when it is made, and that nobody replaces. How long it takes to go
// differs from pod to pod.
func podOf(n Node, i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: fmt.Sprintf("%s%s%d", n.Name, podInfix, i), Labels: labelsOf(n),
			Annotations: map[string]string{cluster.GoneAfterAnnotation: (time.Duration(100+200*(i%5)) * time.Millisecond).String()},
		},
		Spec: corev1.PodSpec{
			NodeName:                      n.Name,
			Containers:                    []corev1.Container{{Name: "main", Image: "example.com/none"}},
			AutomountServiceAccountToken:  ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](1),
		},
	}
}

func labelsOf(n Node) map[string]string { return map[string]string{"app": n.Name} }

// Forbid lets no pod of the node go, if it is budgeted.
func (s *Stage) Forbid(ctx context.Context, n Node) error { return s.keep(ctx, n, n.Pods) }

// Allow lets all go.
func (s *Stage) Allow(ctx context.Context, n Node) error { return s.keep(ctx, n, 0) }

// keep sees to it that the budget of the node is there and that low.
func (s *Stage) keep(ctx context.Context, n Node, least int) error {
	if !n.Budgeted {
		return nil
	}
	return s.Until(ctx, "budget "+n.Name+" to be written", func(ctx context.Context) error {
		b := budgetOf(n, least)
		err := s.Create(ctx, b)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		return s.Patch(ctx, b, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"minAvailable":%d}}`, least)))
	})
}

func budgetOf(n Node, least int) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: n.Name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt(least)), Selector: &metav1.LabelSelector{MatchLabels: labelsOf(n)},
		},
	}
}

// Touch puts a label and a taint of somebody else's on a node, or changes them.
func (s *Stage) Touch(ctx context.Context, n Node, value string) error {
	ctx = context.WithoutCancel(ctx) // who is told to end ends after it: nobody knew how the node has to look
	return s.looks.change(n.Name, func(l invariant.Look) invariant.Look { return touch(l, value) }, func() error {
		return s.Until(ctx, "node "+n.Name+" to be touched", func(ctx context.Context) error {
			var now corev1.Node
			if err := s.Get(ctx, client.ObjectKey{Name: n.Name}, &now); err != nil {
				return err
			}
			now.Labels[touched] = value
			kept := now.Spec.Taints[:0]
			for _, t := range now.Spec.Taints {
				if t.Key != touched {
					kept = append(kept, t)
				}
			}
			now.Spec.Taints = append(kept, corev1.Taint{Key: touched, Value: value, Effect: corev1.TaintEffectNoSchedule})
			return s.Update(ctx, &now)
		})
	})
}
