// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Finalizer keeps a NodeMaintenance until its node has been given back.
const Finalizer = "foregroundDeleteNodeMaintenance"

// MaintenancePhase is how far the maintenance of a node is; empty before the operator has seen the object.
// +kubebuilder:validation:Enum=Running;Succeeded;Failed
type MaintenancePhase string

// The phases.
const (
	// MaintenanceRunning: in progress.
	MaintenanceRunning MaintenancePhase = "Running"
	// MaintenanceSucceeded: the node is held and every pod that must leave has left.
	MaintenanceSucceeded MaintenancePhase = "Succeeded"
	// MaintenanceFailed: given up, for good; the Stalled condition says why.
	MaintenanceFailed MaintenancePhase = "Failed"
)

// NodeMaintenanceSpec says which node to take out of service.
type NodeMaintenanceSpec struct {
	// The name of the node to take out of service. It cannot be changed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="updating spec.NodeName isn't allowed"
	NodeName string `json:"nodeName"`

	// Why the node is under maintenance, for people to read. It may change at any time.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// PodReference names a pod.
type PodReference struct {
	// The namespace of the pod.
	// +required
	Namespace string `json:"namespace"`

	// The name of the pod.
	// +required
	Name string `json:"name"`
}

// NodeMaintenanceStatus is how the maintenance stands. The counts have a default, so that a zero is there
// also when a patch leaves it out.
type NodeMaintenanceStatus struct {
	// How far the maintenance is: Running while in progress; Succeeded when the node is held and every pod
	// that must leave has left; Failed when it was given up.
	// +optional
	Phase MaintenancePhase `json:"phase,omitempty"`

	// The percentage, 0 to 100, of the pods in evictionPods that have left.
	// +optional
	// +kubebuilder:default=0
	DrainProgress int `json:"drainProgress"`

	// When this status last changed.
	// +optional
	LastUpdate *metav1.Time `json:"lastUpdate,omitempty"`

	// What stands in the way now: a line for each blocked or failed pod, what is wrong with the lease, the record or the marks
	// of the node, why a pass or giving the node back failed, or which other object has the node.
	// Empty while pods only take their time to leave.
	// +optional
	LastError string `json:"lastError,omitempty"`

	// The names of the pods still to leave, sorted by name, then namespace.
	// +optional
	// +listType=atomic
	PendingPods []string `json:"pendingPods,omitempty"`

	// The pods of pendingPods with their namespaces, in the same order.
	// +optional
	// +listType=atomic
	PendingPodsRefs []PodReference `json:"pendingPodsRefs,omitempty"`

	// How many pods of any kind and phase were bound to the node when its maintenance began.
	// +optional
	// +kubebuilder:default=0
	TotalPods int `json:"totalPods"`

	// How many pods had to leave when the maintenance began.
	// +optional
	// +kubebuilder:default=0
	EvictionPods int `json:"evictionPods"`

	// How many times in a row the lease of the node could not be had or extended.
	// +optional
	// +kubebuilder:default=0
	ErrorOnLeaseCount int `json:"errorOnLeaseCount"`

	// Ready, LeaseHeld and Drained; Stalled only in phase Failed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// The generation of the object that this status was made for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// NodeMaintenance takes a node out of service for as long as it exists: the node is tainted, cordoned and
// drained, and given back as it was when the object is deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=nodemaintenances,singular=nodemaintenance,shortName=nm,scope=Cluster
// +kubebuilder:printcolumn:name="NodeName",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Progress",type=integer,JSONPath=`.status.drainProgress`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`,priority=1
// +kubebuilder:printcolumn:name="Pending",type=string,JSONPath=`.status.conditions[?(@.type=="Drained")].message`,priority=1
// +kubebuilder:printcolumn:name="LastError",type=string,JSONPath=`.status.lastError`,priority=1
type NodeMaintenance struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which node to take out of service.
	// +required
	Spec NodeMaintenanceSpec `json:"spec"`

	// How the maintenance stands.
	// +optional
	Status NodeMaintenanceStatus `json:"status,omitempty"`
}

// NodeMaintenanceList is a list of NodeMaintenances.
//
// +kubebuilder:object:root=true
type NodeMaintenanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeMaintenance `json:"items"`
}
