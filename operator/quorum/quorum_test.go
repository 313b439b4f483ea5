// SPDX-License-Identifier: Apache-2.0

package quorum

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var guardLabels = map[string]string{"app": "guard"}

func budget(name string, allowed int32) policyv1.PodDisruptionBudget {
	return policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: guardLabels}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}

func pod(name string, labels map[string]string, ready ...corev1.ConditionStatus) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: "cp-0"},
	}
	for _, s := range ready {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: s})
	}
	return p
}

func TestAllowed(t *testing.T) {
	unselective := budget("b", 0)
	unselective.Spec.Selector = nil
	broken := budget("b", 0)
	broken.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "?"}}}

	for _, tc := range []struct {
		reason  string
		budgets []policyv1.PodDisruptionBudget
		pods    []corev1.Pod
		want    bool
		wantErr string
	}{
		{
			reason: "without a budget nothing is known",
			pods:   []corev1.Pod{pod("g", guardLabels, corev1.ConditionFalse)},
		},
		{
			reason:  "of two budgets it is not known which one guards etcd",
			budgets: []policyv1.PodDisruptionBudget{budget("a", 1), budget("b", 1)},
		},
		{
			reason:  "the budget allows a disruption",
			budgets: []policyv1.PodDisruptionBudget{budget("b", 1)},
			pods:    []corev1.Pod{pod("g", guardLabels, corev1.ConditionTrue)},
			want:    true,
		},
		{
			reason:  "the budget is used up and the member on this node is healthy",
			budgets: []policyv1.PodDisruptionBudget{budget("b", 0)},
			pods:    []corev1.Pod{pod("g", guardLabels, corev1.ConditionTrue)},
		},
		{
			reason:  "the member on this node is the one that is down",
			budgets: []policyv1.PodDisruptionBudget{budget("b", 0)},
			pods:    []corev1.Pod{pod("g", guardLabels, corev1.ConditionFalse)},
			want:    true,
		},
		{
			reason:  "an unknown member may still vote",
			budgets: []policyv1.PodDisruptionBudget{budget("b", 0)},
			pods:    []corev1.Pod{pod("g", guardLabels, corev1.ConditionUnknown)},
		},
		{
			reason:  "a member that has not said anything yet may vote",
			budgets: []policyv1.PodDisruptionBudget{budget("b", 0)},
			pods:    []corev1.Pod{pod("g", guardLabels)},
		},
		{
			reason:  "one of two guards is ready",
			budgets: []policyv1.PodDisruptionBudget{budget("b", 0)},
			pods: []corev1.Pod{
				pod("g", guardLabels, corev1.ConditionFalse), pod("h", guardLabels, corev1.ConditionTrue),
			},
		},
		{
			reason:  "there is no guard on this node, only another pod",
			budgets: []policyv1.PodDisruptionBudget{budget("b", 0)},
			pods:    []corev1.Pod{pod("etcd", map[string]string{"app": "etcd"}, corev1.ConditionTrue)},
			want:    true,
		},
		{
			reason:  "a budget without a selector has no guard",
			budgets: []policyv1.PodDisruptionBudget{unselective},
			pods:    []corev1.Pod{pod("g", guardLabels, corev1.ConditionTrue)},
			want:    true,
		},
		{
			reason:  "an unreadable selector is an error",
			budgets: []policyv1.PodDisruptionBudget{broken},
			wantErr: `reading the selector of budget openshift-etcd/b`,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := Allowed(tc.budgets, tc.pods)
			if tc.wantErr != "" {
				require.ErrorContains(t, err, tc.wantErr)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, tc.want, got)
		})
	}
}

type groups struct {
	names []string
	err   error
}

func (g groups) ServerGroups() (*metav1.APIGroupList, error) {
	list := &metav1.APIGroupList{}
	for _, n := range g.names {
		list.Groups = append(list.Groups, metav1.APIGroup{Name: n})
	}
	return list, g.err
}

func TestChecker(t *testing.T) {
	openShift := groups{names: []string{"apps", "config.openshift.io"}}
	worker := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w-0"}}
	master := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-0", Labels: map[string]string{masterLabel: ""}}}
	control := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-0", Labels: map[string]string{controlPlaneLabel: "true"}}}
	elsewhere := budget("other", 1)
	elsewhere.Namespace = "shop"
	otherNode := pod("g1", guardLabels, corev1.ConditionTrue)
	otherNode.Spec.NodeName = "cp-1"

	for _, tc := range []struct {
		reason  string
		node    *corev1.Node
		groups  groups
		objects []client.Object
		want    bool
		wantErr string
	}{
		{reason: "a worker is not asked about", node: worker, groups: groups{err: errors.New("unasked")}, want: true},
		{reason: "other clusters have no such budget", node: control, groups: groups{names: []string{"apps"}}, want: true},
		{reason: "discovery does not answer", node: master, groups: groups{err: errors.New("down")}, wantErr: `asking for API group "config.openshift.io": down`},
		{reason: "a budget of another namespace is another's", node: master, groups: openShift, objects: []client.Object{&elsewhere}},
		{
			reason: "a guard on another node is not this one's", node: control, groups: openShift, want: true,
			objects: []client.Object{new(budget("b", 0)), &otherNode},
		},
		{
			reason: "the guard here is ready", node: master, groups: openShift,
			objects: []client.Object{new(budget("b", 0)), &otherNode, new(pod("g", guardLabels, corev1.ConditionTrue))},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(tc.objects...).
				WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
					return []string{o.(*corev1.Pod).Spec.NodeName}
				}).Build()
			got, err := New(c, tc.groups).Allowed(t.Context(), tc.node)
			if tc.wantErr != "" {
				require.ErrorContains(t, err, tc.wantErr)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, tc.want, got)
		})
	}
}
