// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// mirrorAnnotation marks the image that a kubelet makes of a static pod.
const mirrorAnnotation = "kubernetes.io/config.mirror"

// Node returns a node that is Ready and schedulable.
func Node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		}}},
	}
}

// Namespace returns an active namespace.
func Namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
}

// Pod returns a pod on a node that is Running and Ready, has no owner, and gets 30 s to
// end. Options are applied in order.
func Pod(namespace, name, node string, options ...PodOption) *corev1.Pod {
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	setPodCondition(p, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	for _, o := range options {
		o(p)
	}
	return p
}

// PodOption alters a pod that is being built; any function of this shape will do.
type PodOption func(*corev1.Pod)

// Labels adds labels.
func Labels(l map[string]string) PodOption {
	return func(p *corev1.Pod) {
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		maps.Copy(p.Labels, l)
	}
}

// OwnedBy makes the pod a controller's. The UID of the owner may be empty.
func OwnedBy(apiVersion, kind, name string) PodOption {
	yes := true
	return func(p *corev1.Pod) {
		p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{
			APIVersion: apiVersion, Kind: kind, Name: name, Controller: &yes, BlockOwnerDeletion: &yes,
		})
	}
}

// OfDaemonSet makes the pod one of a DaemonSet. Add that too (see DaemonSet): without it the pod is an orphan,
// which a drain evicts.
func OfDaemonSet(name string) PodOption { return OwnedBy("apps/v1", "DaemonSet", name) }

// OfReplicaSet makes the pod one of a ReplicaSet.
func OfReplicaSet(name string) PodOption { return OwnedBy("apps/v1", "ReplicaSet", name) }

// OfStatefulSet makes the pod one of a StatefulSet.
func OfStatefulSet(name string) PodOption { return OwnedBy("apps/v1", "StatefulSet", name) }

// Mirror makes the pod the mirror of a static pod.
func Mirror() PodOption {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, mirrorAnnotation, "static") }
}

// EmptyDir gives the pod a volume of that kind.
func EmptyDir() PodOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{
			Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		})
	}
}

// Phase sets the phase; a pod that is not Running is not Ready.
func Phase(phase corev1.PodPhase) PodOption {
	return func(p *corev1.Pod) {
		p.Status.Phase = phase
		if phase != corev1.PodRunning {
			NotReady()(p)
		}
	}
}

// NotReady makes the pod unready.
func NotReady() PodOption {
	return func(p *corev1.Pod) {
		setPodCondition(p, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse})
	}
}

// Finalizers adds finalizers, which keep the pod after it has ended.
func Finalizers(names ...string) PodOption {
	return func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, names...) }
}

// TerminatesIn sets how long the pod takes to vanish once deleted, instead of the
// cluster's Options.Termination; it may be Never or OwnGrace.
func TerminatesIn(d time.Duration) PodOption {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, terminationAnnotation, d.String()) }
}

// DaemonSet returns a DaemonSet whose pods carry the label app with its name.
func DaemonSet(namespace, name string) *appsv1.DaemonSet {
	l := map[string]string{"app": name}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: l},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l}},
		},
	}
}

// Budget returns a budget that wants minAvailable of the pods with these labels; its status
// allows no disruption. Cluster.AddBudget sets the status from the pods.
func Budget(namespace, name string, selector map[string]string, minAvailable int) *policyv1.PodDisruptionBudget {
	want := intstr.FromInt32(int32(minAvailable))
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &want,
			Selector:     &metav1.LabelSelector{MatchLabels: selector},
		},
		Status: policyv1.PodDisruptionBudgetStatus{DesiredHealthy: int32(minAvailable)},
	}
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func setPodCondition(p *corev1.Pod, c corev1.PodCondition) {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == c.Type {
			p.Status.Conditions[i] = c
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, c)
}
