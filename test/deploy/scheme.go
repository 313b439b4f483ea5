// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// Scheme returns the types that a client needs who works with the operator: Kubernetes' own and NodeMaintenance.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // only if two types are registered under one name
		}
	}
	return s
}
