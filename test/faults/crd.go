// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/nodemaint/nodemaint/test/deploy"
)

// crd deletes the CustomResourceDefinition, and with it every NodeMaintenance, and puts it back.
type crd struct{}

func (crd) name() string  { return "crd" }
func (crd) title() string { return "the CustomResourceDefinition is deleted and put back" }

const crdName = "crd/nodemaintenances.nodemaintenance.medik8s.io"

func (f crd) run(ctx context.Context, s *stage) (string, error) {
	nodes, err := s.AddNodes(ctx, f.name(), 9, 5)
	if err != nil {
		return "", err
	}
	if err := maintainAll(ctx, s, nodes); err != nil {
		return "", err
	}
	if _, err := s.Kubectl(ctx, nil, "delete", crdName, "--timeout=60s"); err != nil {
		return "", err
	}
	s.Say("deleted; all nodes have to be given back")
	// Nothing is under maintenance now, so that all nodes have to look as before.
	if err := s.Rest(ctx); err != nil {
		return "", fmt.Errorf("with the definition gone: %w", err)
	}
	if _, err := s.Kubectl(ctx, nil, "apply", "--server-side", "-k", filepath.Join(deploy.Root(), "operator", "config", "crd")); err != nil {
		return "", err
	}
	if _, err := s.Kubectl(ctx, nil, "wait", "--for=condition=Established", "--timeout=60s", crdName); err != nil {
		return "", err
	}
	s.Say("put back; the operator has to notice")
	for _, n := range nodes {
		if err := s.Maintain(ctx, n); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d nodes given back, and maintained again", len(nodes)), nil
}
