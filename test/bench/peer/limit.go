// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// runLimit posts the evictions of all nodes as fast as the API server takes them, and does nothing else:
// no cordon, no watch, no status. A refused one is posted again a moment later. With perBudget there is one in
// flight for each budget, budgets side by side; else flying are in flight in all.
func runLimit(ctx context.Context, c kubernetes.Interface, nodes []string, flying int, perBudget bool) error {
	policy := c.PolicyV1().RESTClient()
	lanes, err := lanesOf(ctx, c, nodes, perBudget)
	if err != nil {
		return err
	}
	slots := make(chan struct{}, flying)
	errs := make(chan error, len(lanes))
	for _, pods := range lanes {
		go func() { errs <- postAll(ctx, policy, pods, slots, perBudget) }()
	}
	for range lanes {
		err = errors.Join(err, <-errs)
	}
	return err
}

// lanesOf returns the pods to evict: a lane for each budget if each has its own, else a lane for each pod.
func lanesOf(ctx context.Context, c kubernetes.Interface, nodes []string, perBudget bool) (map[string][]corev1.Pod, error) {
	var budgets policyv1.PodDisruptionBudgetList
	if perBudget {
		list, err := c.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		budgets = *list
	}
	all, err := c.CoreV1().Pods("").List(ctx, metav1.ListOptions{}) // one request, so that the evictions begin at once
	if err != nil {
		return nil, err
	}
	lanes := map[string][]corev1.Pod{}
	for _, p := range all.Items {
		if o := metav1.GetControllerOf(&p); !slices.Contains(nodes, p.Spec.NodeName) || o != nil && o.Kind == "DaemonSet" {
			continue
		}
		lane := laneOf(&p, budgets.Items)
		lanes[lane] = append(lanes[lane], p)
	}
	return lanes, nil
}

// laneOf returns the budget that selects the pod, or the pod itself.
func laneOf(p *corev1.Pod, budgets []policyv1.PodDisruptionBudget) string {
	for _, b := range budgets {
		s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && b.Namespace == p.Namespace && s.Matches(labels.Set(p.Labels)) {
			return "budget " + b.Namespace + "/" + b.Name
		}
	}
	return "pod " + p.Namespace + "/" + p.Name
}

func postAll(ctx context.Context, c rest.Interface, pods []corev1.Pod, slots chan struct{}, perBudget bool) error {
	for len(pods) > 0 {
		p := pods[0]
		pods = pods[1:]
		if !perBudget {
			slots <- struct{}{}
		}
		err := post(ctx, c, &p)
		if !perBudget {
			<-slots
		}
		switch {
		case err == nil, apierrors.IsNotFound(err):
		case apierrors.IsTooManyRequests(err), apierrors.IsConflict(err): // a conflict is what its own collisions end in, after 20 tries
			pods = append(pods, p)
			if err := pauseUntil(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
				return err
			}
		default:
			return fmt.Errorf("evicting %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	return nil
}

func post(ctx context.Context, c rest.Interface, p *corev1.Pod) error {
	e := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}},
	}
	return c.Post().AbsPath("/api/v1").Namespace(p.Namespace).Resource("pods").Name(p.Name).SubResource("eviction").
		Body(e).MaxRetries(0).Do(ctx).Error()
}
