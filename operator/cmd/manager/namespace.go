// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/nodemaint/nodemaint/lease"
)

const (
	leaseNamespaceVariable    = "LEASE_NAMESPACE"
	operatorNamespaceVariable = "OPERATOR_NAMESPACE"

	// inClusterFile says, in a pod, in which namespace it runs.
	inClusterFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// defaultNamespace is where the manifests put the operator.
	defaultNamespace = "node-maintenance-operator-system"
)

// namespaces are where the leases of nodes and the operator are.
type namespaces struct {
	leases   string
	operator string
}

// findNamespaces asks the environment, then file, then takes the defaults. An empty variable counts as not
// set.
func findNamespaces(getenv func(string) string, file string) (namespaces, error) {
	ns := namespaces{leases: getenv(leaseNamespaceVariable), operator: getenv(operatorNamespaceVariable)}
	if ns.leases == "" {
		ns.leases = lease.DefaultNamespace
	}
	if ns.operator == "" {
		read, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return namespaces{}, fmt.Errorf("reading the operator's namespace: %w", err)
		}
		ns.operator = strings.TrimSpace(string(read))
	}
	if ns.operator == "" {
		ns.operator = defaultNamespace
	}
	return ns, errors.Join(
		checkNamespace(leaseNamespaceVariable, ns.leases),
		checkNamespace(operatorNamespaceVariable, ns.operator),
	)
}

func checkNamespace(variable, name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%s: %q is not the name of a namespace: %s", variable, name, strings.Join(problems, "; "))
	}
	return nil
}
