// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// discoverable is what the fake's discovery tells: enough for kubectl's drain helper to
// find evictions.
func discoverable() []*metav1.APIResourceList {
	verbs := metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	in := func(name, kind string) metav1.APIResource {
		return metav1.APIResource{Name: name, Kind: kind, Namespaced: true, Verbs: verbs}
	}
	of := func(name, kind string) metav1.APIResource {
		return metav1.APIResource{Name: name, Kind: kind, Verbs: verbs}
	}
	return []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			of("nodes", "Node"), of("namespaces", "Namespace"),
			in("events", "Event"), in("secrets", "Secret"), in("configmaps", "ConfigMap"), in("pods", "Pod"),
			{Name: "pods/eviction", Kind: "Eviction", Group: "policy", Version: "v1", Namespaced: true, Verbs: metav1.Verbs{"create"}},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			in("daemonsets", "DaemonSet"), in("deployments", "Deployment"), in("replicasets", "ReplicaSet"), in("statefulsets", "StatefulSet"),
		}},
		{GroupVersion: "coordination.k8s.io/v1", APIResources: []metav1.APIResource{in("leases", "Lease")}},
		{GroupVersion: "policy/v1", APIResources: []metav1.APIResource{in("poddisruptionbudgets", "PodDisruptionBudget")}},
	}
}
