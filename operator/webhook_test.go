// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

type etcdAnswer struct {
	allowed bool
	err     error
}

func (a etcdAnswer) Allowed(context.Context, *corev1.Node) (bool, error) { return a.allowed, a.err }

func webhookScheme(t testing.TB) *runtime.Scheme {
	s := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(s))
	require.NoError(t, v1beta1.AddToScheme(s))
	return s
}

func objectFor(name, node string) *v1beta1.NodeMaintenance {
	return &v1beta1.NodeMaintenance{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "NodeMaintenance"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1beta1.NodeMaintenanceSpec{NodeName: node},
	}
}

func TestWebhook(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	fail := func(what runtime.Object) interceptor.Funcs {
		return interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, ok := what.(*corev1.Node); ok {
					return errors.New("server is away")
				}
				return c.Get(ctx, key, o, opts...)
			},
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return errors.New("server is away")
			},
		}
	}
	long := strings.Repeat("n", 253)

	for _, tc := range []struct {
		reason  string
		objects []client.Object
		fail    runtime.Object
		etcd    etcdAnswer
		was, is *v1beta1.NodeMaintenance
		code    int32 // 0 means allowed
		message string
	}{
		{
			reason: "the node exists and nobody maintains it", is: objectFor("a", "n1"),
			objects: []client.Object{node, objectFor("b", "n2")}, etcd: etcdAnswer{allowed: true},
		},
		{
			reason: "there is no such node", is: objectFor("a", "n2"), objects: []client.Object{node},
			code: http.StatusForbidden, message: "invalid nodeName, no node with name n2 found",
		},
		{
			reason: "no node has an empty name", is: objectFor("a", ""), objects: []client.Object{node},
			code: http.StatusForbidden, message: "invalid nodeName, no node with name  found",
		},
		{
			reason: "a name that is a path is nobody's", is: objectFor("a", "../n1"), objects: []client.Object{node},
			code: http.StatusForbidden, message: "invalid nodeName, no node with name ../n1 found",
		},
		{
			reason: "the longest name is still asked for", is: objectFor("a", long), objects: []client.Object{node},
			code: http.StatusForbidden, message: "invalid nodeName, no node with name " + long + " found",
		},
		{
			reason: "another object is for that node", is: objectFor("a", "n1"), etcd: etcdAnswer{allowed: true},
			objects: []client.Object{node, objectFor("b", "n1")},
			code:    http.StatusForbidden, message: "invalid nodeName, a NodeMaintenance for node n1 already exists",
		},
		{
			reason: "a missing node is told before a duplicate", is: objectFor("a", "n2"),
			objects: []client.Object{objectFor("b", "n2")},
			code:    http.StatusForbidden, message: "invalid nodeName, no node with name n2 found",
		},
		{
			reason: "a duplicate is told before etcd", is: objectFor("a", "n1"),
			objects: []client.Object{node, objectFor("b", "n1")},
			code:    http.StatusForbidden, message: "invalid nodeName, a NodeMaintenance for node n1 already exists",
		},
		{
			reason: "etcd cannot spare the node", is: objectFor("a", "n1"), objects: []client.Object{node},
			code:    http.StatusForbidden,
			message: "can not put master/control-plane node into maintenance at this moment, disrupting node n1 will violate etcd quorum",
		},
		{
			reason: "the check of etcd fails, which is no verdict", is: objectFor("a", "n1"), objects: []client.Object{node},
			etcd: etcdAnswer{err: errors.New("server is away")},
			code: http.StatusInternalServerError, message: `checking the quorum of etcd for node "n1": server is away`,
		},
		{
			reason: "the node cannot be read, which is no verdict", is: objectFor("a", "n1"), fail: &corev1.Node{},
			code: http.StatusInternalServerError, message: `getting node "n1": server is away`,
		},
		{
			reason: "the objects cannot be read, which is no verdict", is: objectFor("a", "n1"),
			objects: []client.Object{node}, fail: &v1beta1.NodeMaintenanceList{},
			code: http.StatusInternalServerError, message: `listing NodeMaintenances: server is away`,
		},
		{
			reason: "an update may change anything but the node, even of a node that is gone",
			was:    objectFor("a", "n9"), is: objectFor("a", "n9"),
		},
		{
			reason: "an update must not change the node", was: objectFor("a", "n1"), is: objectFor("a", "n2"),
			code: http.StatusForbidden, message: "updating spec.NodeName isn't allowed",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			scheme := webhookScheme(t)
			b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...)
			if tc.fail != nil {
				b = b.WithInterceptorFuncs(fail(tc.fail))
			}
			hook := admission.WithValidator(scheme, &validator{live: b.Build(), etcd: tc.etcd})

			resp := hook.Handle(t.Context(), request(t, tc.was, tc.is))
			if tc.code == 0 {
				require.True(t, resp.Allowed, "%v", resp.Result)
				return
			}
			require.False(t, resp.Allowed)
			require.Equal(t, tc.code, resp.Result.Code)
			if tc.code == http.StatusForbidden {
				require.Equal(t, tc.message, resp.Result.Message)
			} else {
				require.Contains(t, resp.Result.Message, tc.message)
			}
		})
	}
}

// request is what the API server would send: a create without was.
func request(t *testing.T, was, is *v1beta1.NodeMaintenance) admission.Request {
	raw := func(nm *v1beta1.NodeMaintenance) runtime.RawExtension {
		b, err := json.Marshal(nm)
		require.NoError(t, err)
		return runtime.RawExtension{Raw: b}
	}
	req := admissionv1.AdmissionRequest{UID: "u", Operation: admissionv1.Create, Object: raw(is)}
	if was != nil {
		req.Operation, req.OldObject = admissionv1.Update, raw(was)
	}
	return admission.Request{AdmissionRequest: req}
}
