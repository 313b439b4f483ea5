// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// selection is what one list or watch asks for.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func newSelection(gvr schema.GroupVersionResource, namespace, name string, o metav1.ListOptions) (selection, error) {
	l, err := labels.Parse(o.LabelSelector)
	if err != nil {
		return selection{}, apierrors.NewBadRequest(fmt.Sprintf("unable to parse label selector %q: %v", o.LabelSelector, err))
	}
	f, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return selection{}, apierrors.NewBadRequest(fmt.Sprintf("unable to parse field selector %q: %v", o.FieldSelector, err))
	}
	known := fieldsOf(gvr, nil)
	for _, q := range f.Requirements() {
		if !known.Has(q.Field) {
			return selection{}, apierrors.NewBadRequest("field label not supported: " + q.Field)
		}
	}
	if name != "" {
		f = fields.AndSelectors(f, fields.OneTermEqualSelector("metadata.name", name))
	}
	return selection{namespace: namespace, labels: l, fields: f}, nil
}

func (s selection) matches(o object) bool {
	if s.namespace != "" && s.namespace != o.GetNamespace() {
		return false
	}
	return s.labels.Matches(labels.Set(o.GetLabels())) && s.fields.Matches(fieldsOf(schema.GroupVersionResource{}, o))
}

// fieldsOf gives the fields by which a kind can be selected: of an object, or, with a nil
// object, their names for a resource.
func fieldsOf(gvr schema.GroupVersionResource, o object) fields.Set {
	if o == nil {
		switch gvr {
		case podsResource:
			o = &corev1.Pod{}
		case nodesResource:
			o = &corev1.Node{}
		case eventsResource:
			o = &corev1.Event{}
		case namespacesResource:
			o = &corev1.Namespace{}
		case secretsResource:
			o = &corev1.Secret{}
		default:
			o = &metav1.PartialObjectMetadata{}
		}
	}
	set := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	switch t := o.(type) {
	case *corev1.Pod:
		set["spec.nodeName"] = t.Spec.NodeName
		set["spec.restartPolicy"] = string(t.Spec.RestartPolicy)
		set["spec.schedulerName"] = t.Spec.SchedulerName
		set["spec.serviceAccountName"] = t.Spec.ServiceAccountName
		set["spec.hostNetwork"] = strconv.FormatBool(t.Spec.HostNetwork)
		set["status.phase"] = string(t.Status.Phase)
		set["status.podIP"] = t.Status.PodIP
		set["status.nominatedNodeName"] = t.Status.NominatedNodeName
	case *corev1.Node:
		set["spec.unschedulable"] = strconv.FormatBool(t.Spec.Unschedulable)
	case *corev1.Namespace:
		set["status.phase"] = string(t.Status.Phase)
	case *corev1.Secret:
		set["type"] = string(t.Type)
	case *corev1.Event:
		set["involvedObject.kind"] = t.InvolvedObject.Kind
		set["involvedObject.namespace"] = t.InvolvedObject.Namespace
		set["involvedObject.name"] = t.InvolvedObject.Name
		set["involvedObject.uid"] = string(t.InvolvedObject.UID)
		set["reason"] = t.Reason
		set["reportingComponent"] = t.ReportingController
		set["source"] = t.Source.Component
		set["type"] = t.Type
	}
	return set
}
