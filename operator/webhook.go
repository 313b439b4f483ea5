// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/operator/quorum"
)

// WebhookPath is where the webhook server answers for NodeMaintenances.
const WebhookPath = "/validate-nodemaintenance-medik8s-io-v1beta1-nodemaintenance"

// What the webhook answers; clients depend on the wording.
const (
	noSuchNode      = "invalid nodeName, no node with name %s found"
	alreadyExists   = "invalid nodeName, a NodeMaintenance for node %s already exists"
	quorumViolation = "can not put master/control-plane node into maintenance at this moment, disrupting node %s will violate etcd quorum"
	nodeNameChanged = "updating spec.NodeName isn't allowed"
)

// SetupWebhook registers the validating webhook with the manager's webhook server.
func SetupWebhook(mgr ctrl.Manager) error {
	groups, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a discovery client for the webhook: %w", err)
	}
	live := mgr.GetAPIReader()
	v := &validator{live: live, etcd: quorum.New(live, groups)}
	mgr.GetWebhookServer().Register(WebhookPath, noLarger(admission.WithValidator(mgr.GetScheme(), v)))
	return nil
}

// etcd tells whether a node can be disrupted; quorum.Checker is one.
type etcd interface {
	Allowed(ctx context.Context, node *corev1.Node) (bool, error)
}

// validator admits NodeMaintenances. It reads from the API server, because it refuses for what it reads.
type validator struct {
	live client.Reader
	etcd etcd
}

var _ admission.Validator[*v1beta1.NodeMaintenance] = &validator{}

// ValidateCreate refuses an object for a node that does not exist, that has one already, or that etcd
// cannot spare.
func (v *validator) ValidateCreate(ctx context.Context, nm *v1beta1.NodeMaintenance) (admission.Warnings, error) {
	name := nm.Spec.NodeName
	node, err := v.node(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := v.unclaimed(ctx, name); err != nil {
		return nil, err
	}
	allowed, err := v.etcd.Allowed(ctx, node)
	if err != nil {
		return nil, unanswered(fmt.Errorf("checking the quorum of etcd for node %q: %w", name, err))
	}
	if !allowed {
		return nil, fmt.Errorf(quorumViolation, name)
	}
	return nil, nil
}

// ValidateUpdate refuses another node.
func (v *validator) ValidateUpdate(_ context.Context, was, is *v1beta1.NodeMaintenance) (admission.Warnings, error) {
	if was.Spec.NodeName != is.Spec.NodeName {
		return nil, errors.New(nodeNameChanged)
	}
	return nil, nil
}

// ValidateDelete refuses nothing.
func (v *validator) ValidateDelete(context.Context, *v1beta1.NodeMaintenance) (admission.Warnings, error) {
	return nil, nil
}

func (v *validator) node(ctx context.Context, name string) (*corev1.Node, error) {
	if name == "" || len(content.IsPathSegmentName(name)) > 0 {
		return nil, fmt.Errorf(noSuchNode, name) // no such name can even be asked for
	}
	node := &corev1.Node{}
	err := v.live.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf(noSuchNode, name)
	}
	if err != nil {
		return nil, unanswered(fmt.Errorf("getting node %q: %w", name, err))
	}
	return node, nil
}

func (v *validator) unclaimed(ctx context.Context, node string) error {
	var all v1beta1.NodeMaintenanceList
	if err := v.live.List(ctx, &all); err != nil {
		return unanswered(fmt.Errorf("listing NodeMaintenances: %w", err))
	}
	for i := range all.Items {
		if all.Items[i].Spec.NodeName == node {
			return fmt.Errorf(alreadyExists, node)
		}
	}
	return nil
}

// unanswered is for a check that could not be made: the request may succeed when it is made again, which
// a client must be able to tell from a refusal.
func unanswered(err error) error { return apierrors.NewInternalError(err) }
