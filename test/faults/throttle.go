// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
	"github.com/nodemaint/nodemaint/test/program"
)

// throttle leaves the operator next to nothing of the API server, which refuses the rest of its requests.
type throttle struct{ nodes int }

func (throttle) name() string { return "throttle" }
func (throttle) title() string {
	return "the API server throttles the operator to a few requests at once"
}

func (f throttle) run(ctx context.Context, s *stage) (string, error) {
	nodes, err := s.AddNodes(ctx, f.name(), f.nodes, 5)
	if err != nil {
		return "", err
	}
	began := time.Now()
	narrow := narrowWay(f.name())
	for _, o := range narrow {
		if err := s.Create(ctx, o); err != nil {
			return "", fmt.Errorf("throttling the operator: %w", err)
		}
	}
	err = s.While(ctx, nodes, func(ctx context.Context) error { return program.Pause(ctx, 20*time.Second) })
	for _, o := range narrow {
		err = errors.Join(err, s.Delete(ctx, o))
	}
	if err != nil {
		return "", err
	}
	n, err := f.refused(s, began)
	if err == nil && n == 0 {
		err = errNotThrottled
	}
	return fmt.Sprintf("%d refused requests", n), err
}

// refused returns how many requests of the operator were refused, without evictions: a budget refuses them alike.
func (throttle) refused(s *stage, since time.Time) (int, error) {
	log, err := s.Cluster.ReadAudit(cluster.AuditFilter{User: deploy.User, Since: since})
	n := 0
	for _, e := range log {
		if e.Code == http.StatusTooManyRequests && e.Subresource != "eviction" {
			n++
		}
	}
	return n, err
}

var errNotThrottled = errors.New("no request was refused")

// narrowWay is a priority level of next to nothing, without a queue, and that the operator belongs there.
func narrowWay(name string) []client.Object {
	return []client.Object{
		&flowcontrolv1.PriorityLevelConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
				Type: flowcontrolv1.PriorityLevelEnablementLimited,
				Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
					NominalConcurrencyShares: ptr.To[int32](1), LendablePercent: ptr.To[int32](0), BorrowingLimitPercent: ptr.To[int32](0),
					LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
				},
			},
		},
		&flowcontrolv1.FlowSchema{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: flowcontrolv1.FlowSchemaSpec{
				MatchingPrecedence: 2, PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: name},
				Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
					Subjects: []flowcontrolv1.Subject{{
						Kind: flowcontrolv1.SubjectKindServiceAccount, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: deploy.Namespace, Name: deploy.ServiceAccount},
					}},
					ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
						Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"},
					}},
				}},
			},
		},
	}
}
