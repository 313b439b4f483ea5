// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// kwok once left a DaemonSet's pod Pending for good that was bound as it took the node; any change of the pod made it run.
func TestPodsOfNewNodesAreShownToKwok(t *testing.T) {
	var objects []corev1.Pod
	for name, node := range map[string]string{"bound": "n1", "elsewhere": "n2", "unbound": ""} {
		objects = append(objects, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: corev1.PodSpec{NodeName: node}})
	}
	client := fake.NewClientset(&corev1.PodList{Items: objects})
	require.NoError(t, showPods(t.Context(), client, []string{"n1"}))
	var patched []string
	pods, err := client.CoreV1().Pods("a").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, p := range pods.Items {
		if len(p.Annotations) > 0 {
			patched = append(patched, p.Name)
		}
	}
	require.Equal(t, []string{"bound"}, patched)
}
