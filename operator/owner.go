// SPDX-License-Identifier: Apache-2.0

package operator

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// ownerReference makes the node an owner: when it is deleted, the garbage collector deletes the object.
func ownerReference(n *corev1.Node) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: n.Name, UID: n.UID,
		Controller: ptr.To(false), BlockOwnerDeletion: ptr.To(false),
	}
}

// ownerUID returns the UID of the node that owns nm; empty before it does.
func ownerUID(nm *v1beta1.NodeMaintenance) types.UID {
	for _, o := range nm.OwnerReferences {
		if o.APIVersion == corev1.SchemeGroupVersion.String() && o.Kind == "Node" && o.Name == nm.Spec.NodeName {
			return o.UID
		}
	}
	return ""
}
