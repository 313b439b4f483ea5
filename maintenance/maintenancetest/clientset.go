// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	clienttesting "k8s.io/client-go/testing"
)

// clientset is a fake clientset whose every request the cluster answers. The fake's own
// typed clients drop the context on the way; for the kinds that node maintenance needs,
// clients of the cluster's own stand in front of them and keep it.
type clientset struct {
	*fake.Clientset
	c *Cluster
}

func newClientset(c *Cluster) *clientset {
	f := fake.NewSimpleClientset()
	f.Resources = discoverable()
	// The fake calls its reactors with its lock held. Giving it up meanwhile is what lets
	// requests run beside each other, and wait, without holding up all others.
	f.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r, ok := requestOf(a)
		if !ok {
			return false, nil, nil
		}
		f.Unlock()
		defer f.Lock()
		obj, err := c.serve(context.Background(), r)
		return true, obj, err
	})
	f.PrependWatchReactor("*", func(a clienttesting.Action) (bool, watch.Interface, error) {
		r, ok := requestOf(a)
		if !ok {
			return false, nil, nil
		}
		f.Unlock()
		defer f.Lock()
		w, err := c.serveWatch(context.Background(), r)
		return true, w, err
	})
	return &clientset{Clientset: f, c: c}
}

// CoreV1 implements kubernetes.Interface.
func (s *clientset) CoreV1() coreclient.CoreV1Interface {
	return coreV1{CoreV1Interface: s.Clientset.CoreV1(), c: s.c}
}

// AppsV1 implements kubernetes.Interface.
func (s *clientset) AppsV1() appsclient.AppsV1Interface {
	return appsV1{AppsV1Interface: s.Clientset.AppsV1(), c: s.c}
}

// CoordinationV1 implements kubernetes.Interface.
func (s *clientset) CoordinationV1() coordinationclient.CoordinationV1Interface {
	return coordinationV1{CoordinationV1Interface: s.Clientset.CoordinationV1(), c: s.c}
}

// PolicyV1 implements kubernetes.Interface.
func (s *clientset) PolicyV1() policyclient.PolicyV1Interface {
	return policyV1{PolicyV1Interface: s.Clientset.PolicyV1(), c: s.c}
}
