// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/drain"
	"k8s.io/utils/clock"
)

// The peers run as processes of their own, under users of their own, so that their requests, memory and CPU
// can be told from ours. This file is what they do.

// requeue is how long the library loop waits before it comes back to a node that it could not drain.
const requeue = 5 * time.Second

// drainedLine begins the line that the library loop writes when it has drained a node; the node and the time follow.
const drainedLine = "drained"

// runLoop drains the nodes as an operator does that calls kubectl's library from one worker: cordon, then
// drain.RunNodeDrain with a time-out of 30 s; a node that fails goes to the end of the queue and waits 5 s.
func runLoop(ctx context.Context, kubeconfig string, nodes []string) error {
	c, err := connect(kubeconfig)
	if err != nil {
		return err
	}
	type entry struct {
		node string
		due  time.Time
	}
	var queue []entry
	for _, n := range nodes {
		queue = append(queue, entry{node: n})
	}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if err := pauseUntil(ctx, next.due); err != nil {
			return err
		}
		if err := drainByLibrary(ctx, c, next.node); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", next.node, err)
			queue = append(queue, entry{next.node, time.Now().Add(requeue)})
			continue
		}
		fmt.Println(drainedLine, next.node, time.Now().Format(time.RFC3339Nano))
	}
	return nil
}

func drainByLibrary(ctx context.Context, c kubernetes.Interface, node string) error {
	helper := &drain.Helper{
		Ctx: ctx, Client: c, Force: true, DeleteEmptyDirData: true, IgnoreAllDaemonSets: true, GracePeriodSeconds: -1,
		Timeout: 30 * time.Second, Out: io.Discard, ErrOut: io.Discard,
	}
	n, err := c.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := drain.RunCordonOrUncordon(helper, n, true); err != nil {
		return err
	}
	return drain.RunNodeDrain(helper, node)
}

func pauseUntil(ctx context.Context, due time.Time) error {
	pause := time.Until(due)
	if pause <= 0 {
		return ctx.Err()
	}
	select {
	case <-clock.RealClock{}.After(pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runLimit posts the evictions of all nodes as fast as the API server takes them, and does nothing else:
// no cordon, no watch, no status. A refused one is posted again a moment later. With perBudget there is one in
// flight for each budget, budgets side by side; else flying are in flight in all.
func runLimit(ctx context.Context, kubeconfig string, nodes []string, flying int, perBudget bool) error {
	c, err := connect(kubeconfig)
	if err != nil {
		return err
	}
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
	lanes := map[string][]corev1.Pod{}
	for _, n := range nodes {
		list, err := c.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + n})
		if err != nil {
			return nil, err
		}
		for _, p := range list.Items {
			if o := metav1.GetControllerOf(&p); o != nil && o.Kind == "DaemonSet" {
				continue
			}
			lane := laneOf(&p, budgets.Items)
			lanes[lane] = append(lanes[lane], p)
		}
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
		case apierrors.IsTooManyRequests(err):
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

func connect(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}
