// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// AddBudget creates a budget that wants minAvailable of the pods with these labels, and
// sets its status from the pods that are there. The status then stays as it is, but for
// evictions and SetDisruptionsAllowed, unless the BudgetStatus controller is enabled.
func (c *Cluster) AddBudget(namespace, name string, selector map[string]string, minAvailable int) *policyv1.PodDisruptionBudget {
	b := Budget(namespace, name, selector, minAvailable)
	c.Add(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.assess(key{namespace, name})
	o, _ := c.store.get(budgetsResource, key{namespace, name})
	return copyOf(o.(*policyv1.PodDisruptionBudget))
}

// SetDisruptionsAllowed sets how many pods a budget lets go now, and its healthy count
// accordingly, and counts its spec as observed. It panics if there is no such budget. With
// the BudgetStatus controller enabled the next change of a pod overrides it.
func (c *Cluster) SetDisruptionsAllowed(namespace, name string, allowed int) {
	c.EditBudget(namespace, name, func(b *policyv1.PodDisruptionBudget) {
		b.Status.DisruptionsAllowed = int32(allowed)
		b.Status.CurrentHealthy = b.Status.DesiredHealthy + int32(allowed)
		b.Status.ObservedGeneration = b.Generation
		setDisruptionAllowed(b, c.now())
	})
}

// budgetsOf returns the stored budgets that select a pod.
func (c *Cluster) budgetsOf(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var out []*policyv1.PodDisruptionBudget
	for _, o := range c.store.list(budgetsResource, pod.Namespace) {
		b := o.(*policyv1.PodDisruptionBudget)
		s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && s.Matches(labels.Set(pod.Labels)) {
			out = append(out, b)
		}
	}
	return out
}

// assess computes a budget's status from its pods, as kube-controller-manager does.
func (c *Cluster) assess(k key) {
	o, ok := c.store.get(budgetsResource, k)
	if !ok {
		return
	}
	b := copyOf(o.(*policyv1.PodDisruptionBudget))
	s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return
	}
	var pods []*corev1.Pod
	for _, p := range c.store.list(podsResource, k.namespace) {
		if s.Matches(labels.Set(p.GetLabels())) {
			pods = append(pods, p.(*corev1.Pod))
		}
	}
	setBudgetStatus(b, pods, c.scale(pods), c.now())
	c.put(budgetsResource, b)
}

// scale is how many pods the controllers of these pods want, as far as the cluster holds
// those controllers; a pod without one counts for itself.
func (c *Cluster) scale(pods []*corev1.Pod) int32 {
	n := int32(0)
	seen := map[string]bool{}
	for _, p := range pods {
		ref := metav1.GetControllerOf(p)
		if ref == nil {
			n++
			continue
		}
		gv, _ := schema.ParseGroupVersion(ref.APIVersion)
		gvr, _ := meta.UnsafeGuessKindToResource(gv.WithKind(ref.Kind))
		o, ok := c.store.get(gvr, key{p.Namespace, ref.Name})
		want, scales := replicasOf(o)
		switch id := gvr.String() + "/" + ref.Name; {
		case !ok || !scales:
			n++
		case !seen[id]:
			seen[id] = true
			n += want
		}
	}
	return n
}

// setBudgetStatus is the disruption controller's arithmetic. scale counts the pods that
// ought to be there, and matters for percentages and maxUnavailable only.
func setBudgetStatus(b *policyv1.PodDisruptionBudget, pods []*corev1.Pod, scale int32, now metav1.Time) {
	expected, desired := int32(len(pods)), int32(0)
	switch lo, hi := b.Spec.MinAvailable, b.Spec.MaxUnavailable; {
	case hi != nil:
		expected = scale
		n, err := intstr.GetScaledValueFromIntOrPercent(hi, int(expected), true)
		if err != nil {
			return
		}
		desired = max(0, expected-int32(n))
	case lo != nil && lo.Type == intstr.Int:
		desired = lo.IntVal
	case lo != nil:
		expected = scale
		n, err := intstr.GetScaledValueFromIntOrPercent(lo, int(expected), true)
		if err != nil {
			return
		}
		desired = int32(n)
	}
	disrupted := stillDisrupted(b.Status.DisruptedPods, pods)
	healthy := int32(0)
	for _, p := range pods {
		if _, going := disrupted[p.Name]; !going && p.DeletionTimestamp == nil && podReady(p) {
			healthy++
		}
	}
	s := &b.Status
	s.ExpectedPods, s.DesiredHealthy, s.CurrentHealthy = expected, desired, healthy
	s.DisruptedPods, s.ObservedGeneration = disrupted, b.Generation
	s.DisruptionsAllowed = max(0, healthy-desired)
	if expected <= 0 {
		s.DisruptionsAllowed = 0
	}
	setDisruptionAllowed(b, now)
}

// stillDisrupted drops the pods whose eviction the pods themselves show by now.
func stillDisrupted(was map[string]metav1.Time, pods []*corev1.Pod) map[string]metav1.Time {
	is := maps.Clone(was)
	alive := map[string]bool{}
	for _, p := range pods {
		alive[p.Name] = p.DeletionTimestamp == nil
	}
	maps.DeleteFunc(is, func(name string, _ metav1.Time) bool { return !alive[name] })
	return is
}

// setDisruptionAllowed keeps the condition in step with the number.
func setDisruptionAllowed(b *policyv1.PodDisruptionBudget, now metav1.Time) {
	cond := metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
		ObservedGeneration: b.Status.ObservedGeneration, LastTransitionTime: now,
	}
	if b.Status.DisruptionsAllowed > 0 {
		cond.Status, cond.Reason = metav1.ConditionTrue, policyv1.SufficientPodsReason
	}
	meta.SetStatusCondition(&b.Status.Conditions, cond)
}
