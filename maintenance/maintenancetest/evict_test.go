// SPDX-License-Identifier: Apache-2.0

package maintenancetest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

// evict posts an eviction through the typed client.
func evict(ctx context.Context, c *maintenancetest.Cluster, namespace, name string, o *metav1.DeleteOptions) error {
	return c.Client().PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, DeleteOptions: o,
	})
}

var web = map[string]string{"app": "web"}

func TestEvict(t *testing.T) {
	budget := func(allowed int) func(*maintenancetest.Cluster) {
		return func(c *maintenancetest.Cluster) {
			c.AddBudget("shop", "web", web, 1)
			c.SetDisruptionsAllowed("shop", "web", allowed)
		}
	}
	wrong := types.UID("wrong")
	otherUID := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}}
	old := "1"
	oldVersion := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &old}}
	for _, tt := range []struct {
		reason  string
		pod     []maintenancetest.PodOption
		given   func(*maintenancetest.Cluster)
		options *metav1.DeleteOptions
		want    int
		cause   metav1.CauseType
		message string        // of the cause, else of the error
		left    int           // disruptions that the budget still allows; -1: no budget
		gone    bool          // the pod
		takes   time.Duration // until the answer
	}{
		{reason: "no budget", left: -1, gone: true},
		{reason: "a budget that allows it is charged", given: budget(2), left: 1, gone: true},
		{
			reason: "one that does not answers 429", given: budget(0), want: 429, cause: policyv1.DisruptionBudgetCause,
			message: "The disruption budget web needs 1 healthy pods and has 1 currently",
		},
		{
			reason: "a spec that the controller has not seen", want: 429, cause: policyv1.DisruptionBudgetCause, left: 1,
			given: func(c *maintenancetest.Cluster) {
				budget(1)(c)
				c.EditBudget("shop", "web", func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable.IntVal = 0 })
			},
			message: "The disruption budget web is still being processed by the server.",
		},
		{
			reason: "a negative number answers 403", given: budget(-1), want: 403, cause: policyv1.DisruptionBudgetCause, left: -1,
			message: "The disruption budget web does not allow evicting pods currently: pdb disruptions allowed is negative",
		},
		{
			reason: "two budgets answer 500", want: 500, left: 5,
			given: func(c *maintenancetest.Cluster) {
				budget(5)(c)
				c.AddBudget("shop", "more", web, 0)
			},
			message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
		},
		{reason: "a budget of other pods has no say", left: 0, gone: true, pod: []maintenancetest.PodOption{maintenancetest.Labels(map[string]string{"app": "db"})}, given: budget(0)},
		{reason: "a finished pod needs no budget", given: budget(0), gone: true, pod: []maintenancetest.PodOption{maintenancetest.Phase(corev1.PodSucceeded)}},
		{reason: "a failed pod needs no budget", given: budget(0), gone: true, pod: []maintenancetest.PodOption{maintenancetest.Phase(corev1.PodFailed)}},
		{reason: "a pending pod needs no budget", given: budget(0), gone: true, pod: []maintenancetest.PodOption{maintenancetest.Phase(corev1.PodPending)}},
		{
			reason: "a terminating pod needs no budget", pod: []maintenancetest.PodOption{maintenancetest.TerminatesIn(maintenancetest.Never)},
			given: func(c *maintenancetest.Cluster) { budget(0)(c); c.DeletePod("shop", "web-0") },
		},
		{reason: "an unready pod goes for nothing while enough others are healthy", given: budget(0), gone: true, pod: []maintenancetest.PodOption{maintenancetest.NotReady()}},
		{
			reason: "an unready pod of another UID looks like one that became ready", given: budget(0), options: otherUID,
			want: 429, cause: policyv1.DisruptionBudgetCause, pod: []maintenancetest.PodOption{maintenancetest.NotReady()},
			message: "The disruption budget web is still being processed by the server.",
		},
		{reason: "the budget is charged before the UID is looked at", given: budget(2), options: otherUID, want: 409, left: 1},
		{reason: "and before the version", given: budget(2), options: oldVersion, want: 409, left: 1},
		{
			reason: "a conflict without a budget is repeated", options: otherUID, want: 409, left: -1, takes: 9500 * time.Millisecond,
			pod: []maintenancetest.PodOption{maintenancetest.Phase(corev1.PodPending)},
		},
		{
			reason: "but not if the version is fixed", options: oldVersion, want: 409, left: -1,
			pod: []maintenancetest.PodOption{maintenancetest.Phase(corev1.PodPending)},
		},
		{
			reason: "a namespace on its way out comes before all", want: 403, cause: corev1.NamespaceTerminatingCause,
			given:   func(c *maintenancetest.Cluster) { budget(0)(c); c.TerminateNamespace("shop") },
			message: "namespace shop is being terminated",
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, maintenancetest.Options{})
				c.Add(maintenancetest.Pod("shop", "web-0", "n1", append([]maintenancetest.PodOption{maintenancetest.Labels(web)}, tt.pod...)...))
				if tt.given != nil {
					tt.given(c)
				}
				start := time.Now()
				err := evict(t.Context(), c, "shop", "web-0", tt.options)
				require.Equal(t, tt.want, status(err), "%v", err)
				require.Equal(t, tt.takes, time.Since(start))
				cause, found := apierrors.StatusCause(err, tt.cause)
				require.Equal(t, tt.cause != "", found)
				switch {
				case found:
					require.Equal(t, tt.message, cause.Message)
				case tt.message != "":
					require.EqualError(t, err, tt.message)
				}
				if b := c.Budget("shop", "web"); b != nil {
					require.Equal(t, int32(tt.left), b.Status.DisruptionsAllowed)
				} else {
					require.Equal(t, -1, tt.left)
				}
				require.Equal(t, tt.gone, c.Pod("shop", "web-0") == nil)
			})
		})
	}
}

func TestEvictionMarksThePod(t *testing.T) {
	c := newCluster(t, maintenancetest.Options{Termination: maintenancetest.Never})
	c.Add(maintenancetest.Pod("shop", "web-0", "n1", maintenancetest.Labels(web)))
	c.AddBudget("shop", "web", web, 0)
	require.NoError(t, evict(t.Context(), c, "shop", "web-0", nil))
	p := c.Pod("shop", "web-0")
	require.NotNil(t, p.DeletionTimestamp)
	last := p.Status.Conditions[len(p.Status.Conditions)-1]
	require.Equal(t, corev1.DisruptionTarget, last.Type)
	require.Contains(t, c.Budget("shop", "web").Status.DisruptedPods, "web-0")
	w := c.Writes()
	require.Len(t, w, 1)
	require.Equal(t, "#1 create pods/eviction shop/web-0", w[0].String())
	require.IsType(t, &policyv1.Eviction{}, w[0].Object)
}

func TestEvictionWaitsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, maintenancetest.Options{})
		c.Add(maintenancetest.Pod("shop", "web-0", "n1", maintenancetest.Phase(corev1.PodPending)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wrong := types.UID("wrong")
		err := evict(ctx, c, "shop", "web-0", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotNil(t, c.Pod("shop", "web-0"))
	})
}
