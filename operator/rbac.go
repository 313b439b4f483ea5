// SPDX-License-Identifier: Apache-2.0

package operator

// The operator's rights, from which operator/config/rbac/role.yaml is generated. What is not here it may
// not do, and needs not.
//
// The object itself. The right to delete is never used: the admission plugin OwnerReferencesPermissionEnforcement
// asks for it before it lets an owner be set.
//
// +kubebuilder:rbac:groups=nodemaintenance.medik8s.io,resources=nodemaintenances,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=nodemaintenance.medik8s.io,resources=nodemaintenances/status,verbs=patch
//
// The node and its pods.
//
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch
//
// The lease of the node, and the namespace of leases if it is missing.
//
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=create
//
// Events, and who may read the metrics.
//
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:roleName=metrics-auth-role,groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:roleName=metrics-auth-role,groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
//
// The authority of the webhook's certificate.
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=update,resourceNames=node-maintenance-operator-validating-webhook-configuration
//
// In its own namespace: leader election, and the one Secret with the webhook's certificate. Creating it by
// server-side apply is a patch under its name, so that this right too is for that name only.
//
// +kubebuilder:rbac:roleName=leader-election-role,groups=coordination.k8s.io,namespace=system,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:roleName=leader-election-role,groups="",namespace=system,resources=events,verbs=create;patch
// +kubebuilder:rbac:roleName=webhook-certificate-role,groups="",namespace=system,resources=secrets,verbs=list;watch;create;patch;update,resourceNames=webhook-server-cert
