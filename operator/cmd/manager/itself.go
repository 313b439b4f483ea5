// SPDX-License-Identifier: Apache-2.0

package main

import corev1 "k8s.io/api/core/v1"

// podNameVariable names the pod that the program runs in; the manifests set it.
const podNameVariable = "POD_NAME"

// itself picks the pod of that name in the operator's namespace: on a node that it drains it leaves last. An
// empty name, outside a cluster, picks none.
func itself(namespace, name string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return name != "" && p.Namespace == namespace && p.Name == name }
}
