// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

const (
	resource = "nodemaintenances"
	// askAgain is the pause between two questions to an API server that does not answer.
	askAgain = time.Second
	// askTimeout bounds one question.
	askTimeout = 5 * time.Second
)

// errNoCRD is that the API server answers and does not know NodeMaintenances.
var errNoCRD = errors.New(`this cluster has no NodeMaintenances: the CustomResourceDefinition ` + resource + `.` +
	v1beta1.GroupVersion.Group + ` with version ` + v1beta1.GroupVersion.Version + ` is not installed. ` +
	`Apply it with "kubectl apply -k operator/config/crd", or everything the operator needs with "kubectl apply -k operator/config/default"`)

// resourcesOf is the one question; a discovery client answers it.
type resourcesOf func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)

// askFor returns how to ask the API server of c.
func askFor(c *rest.Config) (resourcesOf, error) {
	c = rest.CopyConfig(c)
	c.Timeout = askTimeout
	d, err := discovery.NewDiscoveryClientForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	return d.ServerResourcesForGroupVersionWithContext, nil
}

// awaitAPI returns when the API server says that it serves NodeMaintenances. While there is no answer it
// asks again every pause, until ctx ends. Errors: errNoCRD, or that of ctx.
func awaitAPI(ctx context.Context, ask resourcesOf, pause time.Duration) error {
	log := logr.FromContextOrDiscard(ctx)
	last := ""
	return wait.PollUntilContextCancel(ctx, pause, true, func(ctx context.Context) (bool, error) {
		list, err := ask(ctx, v1beta1.GroupVersion.String())
		switch {
		case apierrors.IsNotFound(err):
			return false, errNoCRD
		case err != nil:
			if last != err.Error() { // once for each way of not answering
				last = err.Error()
				log.Info("the API server does not answer; asking until it does", "reason", last)
			}
			return false, nil
		case !serves(list):
			return false, errNoCRD
		}
		return true, nil
	})
}

func serves(list *metav1.APIResourceList) bool {
	for _, r := range list.APIResources {
		if r.Name == resource {
			return true
		}
	}
	return false
}
