// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// Progress holds that nobody says a drain is further than it is. An object that is being deleted is left out: its
// node may have been given back, and pods may be on it again.
func Progress(s Snapshot) []Breach {
	r := rule{name: "progress"}
	left := map[string]string{} // by node, one of them
	for i := range s.Pods {
		if p := &s.Pods[i]; mustLeave(p) {
			left[p.Spec.NodeName] = p.Namespace + "/" + p.Name
		}
	}
	for _, nm := range s.Maintenances {
		n, st := nm.Spec.NodeName, nm.Status
		if st.DrainProgress < 0 || st.DrainProgress > 100 {
			r.broken(nm.Name, "progress %d", st.DrainProgress)
		}
		if st.Phase == v1beta1.MaintenanceSucceeded && st.DrainProgress != 100 {
			r.broken(nm.Name, "Succeeded at progress %d", st.DrainProgress)
		}
		done := st.Phase == v1beta1.MaintenanceSucceeded || st.DrainProgress == 100
		if done && left[n] != "" && nm.DeletionTimestamp == nil && s.owns(nm) {
			r.broken(nm.Name, "phase %s, progress %d, and pod %s is left on node %s", st.Phase, st.DrainProgress, left[n], n)
		}
	}
	return r.out
}

// owns says whether the node of that name is the one that the object is for, and not one that came after it.
func (s Snapshot) owns(nm v1beta1.NodeMaintenance) bool {
	n := s.node(nm.Spec.NodeName)
	if n == nil {
		return false
	}
	for _, o := range nm.OwnerReferences {
		if o.Kind == "Node" && o.UID != n.UID {
			return false
		}
	}
	return true
}

// mustLeave says whether a drain has to move the pod: it is bound, and neither a mirror nor a DaemonSet's.
func mustLeave(p *corev1.Pod) bool {
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror || p.Spec.NodeName == "" {
		return false
	}
	o := metav1.GetControllerOf(p)
	return o == nil || o.Kind != "DaemonSet"
}
