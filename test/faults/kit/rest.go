// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/deploy"
	"github.com/nodemaint/nodemaint/test/invariant"
)

// Rest is Calm, and Past after it.
func (s *Stage) Rest(ctx context.Context) error {
	if err := s.Calm(ctx); err != nil {
		return err
	}
	return s.Past()
}

// Calm brings the cluster to rest and checks the invariants: first every maintenance has to succeed, then all are
// ended and every node has to be what it was. The operator must run and be reachable by then. Errors: what does not
// come to rest, what is broken.
func (s *Stage) Calm(ctx context.Context) error {
	s.Say("waiting until all is done")
	if err := s.allowAll(ctx); err != nil {
		return err
	}
	if err := s.atRest(ctx, "every maintenance to succeed"); err != nil {
		return err
	}
	s.Say("giving all nodes back")
	if err := s.endAll(ctx); err != nil {
		return err
	}
	return s.atRest(ctx, "every node to be what it was")
}

// allowAll removes every budget. To open them would not do: an eviction that broke off in the middle has charged
// its budget, and Kubernetes takes that back after two minutes only.
func (s *Stage) allowAll(ctx context.Context) error {
	return s.Until(ctx, "all budgets to be removed", func(ctx context.Context) error {
		return s.DeleteAllOf(ctx, &policyv1.PodDisruptionBudget{}, client.InNamespace(Namespace))
	})
}

// endAll deletes every maintenance and waits until all are gone.
func (s *Stage) endAll(ctx context.Context) error {
	var all v1beta1.NodeMaintenanceList
	if err := s.List(ctx, &all); err != nil && !invariant.Unknown(err) {
		return fmt.Errorf("listing NodeMaintenances: %w", err)
	}
	for _, nm := range all.Items {
		if err := s.GiveBack(ctx, Node{Name: nm.Name}); err != nil {
			return err
		}
	}
	for _, nm := range all.Items {
		if err := s.Gone(ctx, Node{Name: nm.Name}); err != nil {
			return err
		}
		s.Finished.Add(1)
	}
	return nil
}

// atRest waits until no invariant of a cluster at rest is broken.
func (s *Stage) atRest(ctx context.Context, what string) error {
	return s.Until(ctx, what, func(ctx context.Context) error {
		return s.looks.during(func(before map[string]invariant.Look) error {
			now, err := invariant.ReadAll(ctx, s.Client)
			if err != nil {
				return err
			}
			return s.unexcused(invariant.AtRest(now, before))
		})
	})
}

// unexcused is broken, but for what the audit log excuses. That is read only if nothing else is broken: it is long.
func (s *Stage) unexcused(all []invariant.Breach) error {
	if len(all) == 0 || len(invariant.NotOfEnds(all)) > 0 {
		return broken(all)
	}
	log, err := s.audit()
	if err != nil {
		return err
	}
	return broken(invariant.WithoutUnseen(all, invariant.Gaps(log, deploy.User)))
}

// Past checks the audit log, from the beginning of the cluster.
func (s *Stage) Past() error {
	log, err := s.audit()
	if err != nil {
		return err
	}
	return broken(invariant.Evictions(log, deploy.User, nodeOf))
}

// most is how many broken invariants are told.
const most = 20

func broken(all []invariant.Breach) error {
	var errs []error
	for i, b := range all {
		if i == most {
			errs = append(errs, fmt.Errorf("%w: and %d more", errBroken, len(all)-most))
			break
		}
		errs = append(errs, fmt.Errorf("%w: %s", errBroken, b))
	}
	return errors.Join(errs...)
}
