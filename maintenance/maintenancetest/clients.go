// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	clienttesting "k8s.io/client-go/testing"
)

// In each client here the embedded *typed answers, being nearer than the fake client one
// level further down, which has the methods that typed lacks.

type coreV1 struct {
	coreclient.CoreV1Interface
	c *Cluster
}

type (
	podsRest struct{ coreclient.PodInterface }
	pods     struct {
		*typed[*corev1.Pod, *corev1.PodList]
		podsRest
	}
)

func (g coreV1) Pods(ns string) coreclient.PodInterface {
	return pods{&typed[*corev1.Pod, *corev1.PodList]{
		g.c, podsResource, "Pod", ns,
		func() *corev1.Pod { return &corev1.Pod{} }, func() *corev1.PodList { return &corev1.PodList{} },
	}, podsRest{g.CoreV1Interface.Pods(ns)}}
}

func (p pods) EvictV1(ctx context.Context, e *policyv1.Eviction) error {
	return p.c.postEviction(ctx, p.ns, e)
}

func (p pods) EvictV1beta1(ctx context.Context, e *policyv1beta1.Eviction) error {
	return p.c.postEviction(ctx, p.ns, e)
}

func (p pods) Evict(ctx context.Context, e *policyv1beta1.Eviction) error {
	return p.c.postEviction(ctx, p.ns, e)
}

func (c *Cluster) postEviction(ctx context.Context, ns string, body runtime.Object) error {
	r, _ := requestOf(clienttesting.NewCreateSubresourceAction(podsResource, "", "eviction", ns, body))
	_, err := c.serve(ctx, r)
	return err
}

type (
	nodesRest struct{ coreclient.NodeInterface }
	nodes     struct {
		*typed[*corev1.Node, *corev1.NodeList]
		nodesRest
	}
)

func (g coreV1) Nodes() coreclient.NodeInterface {
	return nodes{&typed[*corev1.Node, *corev1.NodeList]{
		g.c, nodesResource, "Node", "",
		func() *corev1.Node { return &corev1.Node{} }, func() *corev1.NodeList { return &corev1.NodeList{} },
	}, nodesRest{g.CoreV1Interface.Nodes()}}
}

type (
	namespacesRest struct{ coreclient.NamespaceInterface }
	namespaces     struct {
		*typed[*corev1.Namespace, *corev1.NamespaceList]
		namespacesRest
	}
)

func (g coreV1) Namespaces() coreclient.NamespaceInterface {
	return namespaces{&typed[*corev1.Namespace, *corev1.NamespaceList]{
		g.c, namespacesResource, "Namespace", "",
		func() *corev1.Namespace { return &corev1.Namespace{} }, func() *corev1.NamespaceList { return &corev1.NamespaceList{} },
	}, namespacesRest{g.CoreV1Interface.Namespaces()}}
}

type (
	eventsRest struct{ coreclient.EventInterface }
	events     struct {
		*typed[*corev1.Event, *corev1.EventList]
		eventsRest
	}
)

func (g coreV1) Events(ns string) coreclient.EventInterface {
	return events{&typed[*corev1.Event, *corev1.EventList]{
		g.c, eventsResource, "Event", ns,
		func() *corev1.Event { return &corev1.Event{} }, func() *corev1.EventList { return &corev1.EventList{} },
	}, eventsRest{g.CoreV1Interface.Events(ns)}}
}

type (
	secretsRest struct{ coreclient.SecretInterface }
	secrets     struct {
		*typed[*corev1.Secret, *corev1.SecretList]
		secretsRest
	}
)

func (g coreV1) Secrets(ns string) coreclient.SecretInterface {
	return secrets{&typed[*corev1.Secret, *corev1.SecretList]{
		g.c, secretsResource, "Secret", ns,
		func() *corev1.Secret { return &corev1.Secret{} }, func() *corev1.SecretList { return &corev1.SecretList{} },
	}, secretsRest{g.CoreV1Interface.Secrets(ns)}}
}

type appsV1 struct {
	appsclient.AppsV1Interface
	c *Cluster
}

type (
	daemonSetsRest struct{ appsclient.DaemonSetInterface }
	daemonSets     struct {
		*typed[*appsv1.DaemonSet, *appsv1.DaemonSetList]
		daemonSetsRest
	}
)

func (g appsV1) DaemonSets(ns string) appsclient.DaemonSetInterface {
	return daemonSets{&typed[*appsv1.DaemonSet, *appsv1.DaemonSetList]{
		g.c, daemonSetsResource, "DaemonSet", ns,
		func() *appsv1.DaemonSet { return &appsv1.DaemonSet{} }, func() *appsv1.DaemonSetList { return &appsv1.DaemonSetList{} },
	}, daemonSetsRest{g.AppsV1Interface.DaemonSets(ns)}}
}

type coordinationV1 struct {
	coordinationclient.CoordinationV1Interface
	c *Cluster
}

type (
	leasesRest struct {
		coordinationclient.LeaseInterface
	}
	leases struct {
		*typed[*coordinationv1.Lease, *coordinationv1.LeaseList]
		leasesRest
	}
)

func (g coordinationV1) Leases(ns string) coordinationclient.LeaseInterface {
	return leases{&typed[*coordinationv1.Lease, *coordinationv1.LeaseList]{
		g.c, leasesResource, "Lease", ns,
		func() *coordinationv1.Lease { return &coordinationv1.Lease{} },
		func() *coordinationv1.LeaseList { return &coordinationv1.LeaseList{} },
	}, leasesRest{g.CoordinationV1Interface.Leases(ns)}}
}

type policyV1 struct {
	policyclient.PolicyV1Interface
	c *Cluster
}

type evictions struct {
	c  *Cluster
	ns string
}

func (g policyV1) Evictions(ns string) policyclient.EvictionInterface { return evictions{g.c, ns} }

func (e evictions) Evict(ctx context.Context, body *policyv1.Eviction) error {
	return e.c.postEviction(ctx, e.ns, body)
}

type (
	budgetsRest struct {
		policyclient.PodDisruptionBudgetInterface
	}
	budgets struct {
		*typed[*policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudgetList]
		budgetsRest
	}
)

func (g policyV1) PodDisruptionBudgets(ns string) policyclient.PodDisruptionBudgetInterface {
	return budgets{&typed[*policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudgetList]{
		g.c, budgetsResource, "PodDisruptionBudget", ns,
		func() *policyv1.PodDisruptionBudget { return &policyv1.PodDisruptionBudget{} },
		func() *policyv1.PodDisruptionBudgetList { return &policyv1.PodDisruptionBudgetList{} },
	}, budgetsRest{g.PolicyV1Interface.PodDisruptionBudgets(ns)}}
}
