// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

func TestRead(t *testing.T) {
	s := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(s))
	require.NoError(t, v1beta1.AddToScheme(s))
	n, p, nm, l := node(), pod(), maintained(v1beta1.MaintenanceRunning, 0), leaseOf("l", "n", ourHolder, "node-uid")
	e := event("u1", begun, 1)
	e.Namespace, e.Name = "default", "e"
	elsewhere := *e.DeepCopy()
	elsewhere.Namespace = "other"
	var failing error
	asked := map[string]string{}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(&n, &p, &nm, &l, &e, &elsewhere).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			var all client.ListOptions
			all.ApplyOptions(o)
			if _, ok := list.(*v1beta1.NodeMaintenanceList); ok && failing != nil {
				return failing
			}
			if all.Raw != nil {
				asked[string(all.Raw.ResourceVersionMatch)] = all.Raw.ResourceVersion
			}
			return c.List(ctx, list, o...)
		},
	}).Build()

	now, err := ReadAll(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, now.Nodes, 1)
	require.Len(t, now.Pods, 1)
	require.Len(t, now.Leases, 1)
	require.Len(t, now.Maintenances, 1)
	require.Len(t, now.Events, 1, "of the namespace default")
	require.Equal(t, map[string]string{"Exact": now.Version}, asked, "all of one version")

	failing = apierrors.NewNotFound(corev1.Resource("nodemaintenances"), "")
	now, err = Read(t.Context(), c)
	require.NoError(t, err, "without the CustomResourceDefinition there are none")
	require.Empty(t, now.Maintenances)
	require.Len(t, now.Pods, 1)

	failing = errors.New("the API server is away")
	_, err = Read(t.Context(), c)
	require.ErrorIs(t, err, failing)
}
