// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/cluster"
)

// A lease that cannot be had at all is given up after four attempts, without a touch of the node.
func TestALeaseThatIsRefusedFromTheStart(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	before := e.getNode(t, node)
	e.refuseLease(t, node)
	begin := time.Now()
	nm := e.maintain(t, node)

	refused := e.until(t, nm, "refused", leaseIs(v1beta1.ReasonRefused))
	require.Equal(t, v1beta1.MaintenanceRunning, refused.Status.Phase)
	require.Equal(t, 1, refused.Status.ErrorOnLeaseCount)
	require.Contains(t, refused.Status.LastError, "not in this test")
	failed := e.until(t, nm, "Failed", inPhase(v1beta1.MaintenanceFailed))
	require.Equal(t, "maintenance failed: lease could not be extended after 4 attempts", failed.Status.LastError)
	requireConditions(t, failed, map[string]string{"Ready": "False Failed", "LeaseHeld": "False Refused", "Stalled": "True LeaseLost"})
	e.end(t, nm)
	require.Zero(t, e.nodeWrites(t, node, begin))
	require.Equal(t, before.Spec, e.getNode(t, node).Spec)
	require.Equal(t, map[string]int{"FailedMaintenance": 1, "RemovedMaintenance": 1}, e.events(t, "NodeMaintenance", nm.Name))
}

// refuseLease lets the API server refuse every write of the node's lease.
func (e *env) refuseLease(t *testing.T, node string) {
	t.Helper()
	rule := admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{"coordination.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"leases"}},
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "no-lease." + node},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: rule}}},
			Validations:      []admissionv1.Validation{{Expression: "object.metadata.name != 'node-" + node + "'", Message: "not in this test"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	for _, o := range []client.Object{policy, binding} {
		require.NoError(t, e.Create(t.Context(), o))
		t.Cleanup(func() { _ = e.Delete(context.Background(), o) })
	}
	e.eventually(t, "the API server to refuse", func() bool {
		try := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "node-" + node}}
		return apierrors.IsInvalid(e.Create(t.Context(), try, client.DryRunAll))
	})
}

// A writer that changes the lease all the time collides with our renewals; that is no failure.
func TestWritesOfALeaseThatCollideAreNoFailure(t *testing.T) {
	t.Parallel()
	e := shared
	node := e.node(t)
	nm := e.maintain(t, node)
	e.succeed(t, nm)
	film := e.filmMaintenance(t, nm.Name)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			l := &coordinationv1.Lease{}
			if e.Get(ctx, client.ObjectKey{Namespace: leaseNamespace, Name: "node-" + node}, l) != nil {
				continue
			}
			if time.Since(l.Spec.RenewTime.Time) < time.Minute {
				l.Spec.RenewTime = ago(30 * time.Minute)
			}
			metav1.SetMetaDataAnnotation(&l.ObjectMeta, "example.com/again", strings.Repeat("x", i%10))
			_ = e.Update(ctx, l) // it collides too
		}
	}()

	conflicts := func() int {
		events, err := e.Cluster.ReadAudit(cluster.AuditFilter{Verb: "update"})
		require.NoError(t, err)
		n := 0
		for _, ev := range events {
			if ev.Resource == "leases" && ev.Name == "node-"+node && ev.Code == 409 && strings.Contains(ev.User, "controller-manager") {
				n++
			}
		}
		return n
	}
	e.eventually(t, "collisions", func() bool { return conflicts() >= 5 })

	cancel()
	<-ended
	e.eventually(t, "the renewal", func() bool { return time.Since(e.lease(t, node).Spec.RenewTime.Time) < time.Minute })
	e.passed(t, nm)
	for _, s := range film.all(t) {
		require.Zero(t, s.Status.ErrorOnLeaseCount)
		require.Equal(t, v1beta1.MaintenanceSucceeded, s.Status.Phase)
	}
	require.Zero(t, e.events(t, "NodeMaintenance", nm.Name)["LeaseLost"])
}
