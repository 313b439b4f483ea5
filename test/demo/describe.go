// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// describe returns what of a node a maintenance changes, and which pods are on it.
func describe(n *corev1.Node, pods []corev1.Pod) string {
	var b strings.Builder
	line := func(key, value string) { fmt.Fprintf(&b, "  %-19s %s\n", key, value) }
	line("name", n.Name)
	line("spec.unschedulable", fmt.Sprint(n.Spec.Unschedulable))
	taints := make([]string, 0, len(n.Spec.Taints))
	for _, t := range n.Spec.Taints {
		taints = append(taints, t.ToString())
	}
	line("spec.taints", list(taints))
	line("labels", list(pairs(n.Labels)))
	line("annotations", list(pairs(n.Annotations)))
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	slices.Sort(names)
	line(fmt.Sprintf("%d pods", len(names)), list(names))
	return b.String()
}

func pairs(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k, v := range m {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}

func list(values []string) string {
	if len(values) == 0 {
		return "none"
	}
	return strings.Join(values, "\n                      ")
}
