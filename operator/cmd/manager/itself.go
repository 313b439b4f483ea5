// SPDX-License-Identifier: Apache-2.0

package main

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// podNameVariable names the pod that the program runs in; the manifests set it.
const podNameVariable = "POD_NAME"

// only picks that pod, the program's own: on a node that it drains it leaves last. One without a name, outside a
// cluster, is none.
func only(pod v1beta1.PodReference) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		return pod.Name != "" && p.Namespace == pod.Namespace && p.Name == pod.Name
	}
}
