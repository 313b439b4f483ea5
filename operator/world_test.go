// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/drainer"
	"github.com/nodemaint/nodemaint/lease"
	"github.com/nodemaint/nodemaint/maintenance"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// leases is where the leases of nodes are.
const leases = "medik8s-leases"

// itself is the pod that the operator runs in, if a test adds it.
var itself = v1beta1.PodReference{Namespace: "self", Name: "operator"}

// world is a fake cluster with the whole operator in it: manager, cache, controller, engine, and the clients
// that it has in earnest.
type world struct {
	*mt.Cluster
	t     *testing.T
	crash *mt.Rule    // of the operator
	end   func()      // ends the operator that runs, and waits for it
	past  int         // how many changes ago the next operator sees first
	blind atomic.Bool // whether copies were old: then an eviction of a pod that goes already is no wrong
	mu    sync.Mutex
	wrong []string // what no eviction may be, when there was one
}

// inWorld runs f in a bubble with node n1, and with the operator.
func inWorld(t *testing.T, f func(w *world), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := mt.New(mt.Options{
			Scheme: webhookScheme(t), Termination: time.Second, Controllers: []mt.Controller{mt.UnschedulableTaint},
		}, objects...)
		w := &world{Cluster: c, t: t}
		c.OnRequest(w.witness)
		defer synctest.Wait()
		defer c.Close()
		w.boot()
		defer func() { w.end() }()
		defer w.Heartbeat()()
		f(w)
	})
}

// boot starts an operator that remembers nothing.
func (w *world) boot() {
	w.t.Helper()
	cfg := w.Config()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: webhookScheme(w.t), Logger: logr.Discard(), MapperProvider: mapper,
		Cache:      cache.Options{ReaderFailOnMissingInformer: true},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	require.NoError(w.t, err)
	client, err := kubernetes.NewForConfig(cfg)
	require.NoError(w.t, err)
	manager := lease.NewManager(client, maintenance.DefaultHolder, lease.Options{Namespace: leases})
	require.NoError(w.t, Setup(mgr, SetupOptions{
		Engine: func(onTransition func(context.Context, maintenance.Transition) error) maintenance.Interface {
			return maintenance.New(client, maintenance.Options{
				Lease:        manager,
				OnTransition: onTransition,
				Drainer: drainer.New(client, drainer.Options{Last: func(p *corev1.Pod) bool {
					return p.Namespace == itself.Namespace && p.Name == itself.Name
				}}),
			})
		},
		Held:                    manager.Held,
		MaxConcurrentReconciles: 2, Itself: itself,
	}))
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.end = func() {
		cancel()
		require.NoError(w.t, <-done)
	}
}

// reboot plays a process that dies and another that takes its place.
func (w *world) reboot() {
	w.end()
	if w.crash != nil {
		w.crash.Remove()
		w.crash = nil
	}
	if w.past > 0 {
		w.lag(w.past)
		w.past = 0
	}
	w.boot()
}

// await waits until it is so; an operator that has crashed meanwhile is started again.
func (w *world) await(what string, isSo func() bool) {
	w.t.Helper()
	crashed := func() bool { return w.crash != nil && w.crash.Hits() > 0 }
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Minute)
	defer cancel()
	for {
		err := w.Until(ctx, func() bool { return crashed() || isSo() })
		if err != nil {
			require.FailNow(w.t, "never "+what, "%+v\n%s\n%v", w.object("a"), looks(w.Node("n1")), w.tail())
		}
		if !crashed() {
			return
		}
		w.reboot()
	}
}

// witness looks at each eviction as it arrives.
func (w *world) witness(r mt.Request) error {
	if r.Verb != "create" || r.Subresource != "eviction" {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.Pod(r.Namespace, r.Name); p == nil || p.DeletionTimestamp != nil || p.UID != *r.Preconditions.UID || p.Spec.NodeName != "n1" {
		w.wrong = append(w.wrong, r.String()+": of no pod, of another, or of one that goes already")
	}
	if l := w.Lease(leases, "node-n1"); l == nil || *l.Spec.HolderIdentity != maintenance.DefaultHolder {
		w.wrong = append(w.wrong, r.String()+": without the lease")
	}
	return nil
}

// rest lets everything come to rest.
func (w *world) rest() {
	<-time.After(30 * time.Second)
	synctest.Wait()
}

// version is that of the latest change.
func (w *world) version() int {
	v, err := strconv.Atoi(w.ResourceVersion())
	require.NoError(w.t, err)
	return v
}

// steal gives the lease of n1 to another.
func (w *world) steal() {
	w.EditLease(leases, "node-n1", func(l *coordinationv1.Lease) {
		began := metav1.NewMicroTime(time.Date(2000, 1, 1, 0, 30, 0, 0, time.UTC)) // in every run the same
		l.Spec.HolderIdentity, l.Spec.RenewTime = ptr.To("them"), &began
	})
}

// tail returns the last requests.
func (w *world) tail() []string {
	var out []string
	all := w.Requests()
	for _, r := range all[max(0, len(all)-30):] {
		out = append(out, "\n"+r.String())
	}
	return out
}

func (w *world) object(name string) *v1beta1.NodeMaintenance {
	return mt.Look[*v1beta1.NodeMaintenance](w.Cluster, "", name)
}

func (w *world) status(name string) v1beta1.NodeMaintenanceStatus {
	if nm := w.object(name); nm != nil {
		return nm.Status
	}
	return v1beta1.NodeMaintenanceStatus{}
}

// looks is what a node looks like from outside, but for when kube-controller-manager added its taint.
func looks(n *corev1.Node) string {
	n = n.DeepCopy()
	for i := range n.Spec.Taints {
		if n.Spec.Taints[i].Key == corev1.TaintNodeUnschedulable {
			n.Spec.Taints[i].TimeAdded = nil
		}
	}
	return fmt.Sprintf("%s %v %v %+v", n.UID, n.Labels, n.Annotations, n.Spec)
}

// mapper knows the kinds that the operator's client asks for.
func mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1beta1.GroupVersion, corev1.SchemeGroupVersion})
	m.Add(v1beta1.GroupVersion.WithKind("NodeMaintenance"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	return m, nil
}
