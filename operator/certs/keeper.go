// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// lookAgain is how often the certificate is looked at when nothing changes.
const lookAgain = 12 * time.Hour

// fieldOwner is who creates the Secret.
const fieldOwner = client.FieldOwner("node-maintenance-operator")

// keeper keeps Secret, served certificate and webhook configuration as they should be.
type keeper struct {
	reader  client.Reader // the copy of the one Secret and the one webhook configuration
	writer  client.Writer
	secret  client.ObjectKey
	names   []string
	serving *Serving
	clock   clock.PassiveClock
}

// Reconcile looks at all of it. Each of its own writes wakes it again, as does a write of another replica.
func (k *keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	err := k.reader.Get(ctx, k.secret, secret)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, k.create(ctx)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("getting secret %q: %w", k.secret, err)
	}
	data, changed, err := renew(secret.Data, k.names, k.clock.Now())
	if err != nil {
		return reconcile.Result{}, err
	}
	if changed {
		secret = secret.DeepCopy()
		secret.Data = data
		return reconcile.Result{}, k.update(ctx, secret)
	}
	if err := k.serving.hold(data); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: lookAgain}, k.inject(ctx, data[caFile])
}

// create makes the Secret, empty, by server-side apply: that names the object in the request, so that the
// right to create can be given for this one name. If another replica made it first, nothing happens.
func (k *keeper) create(ctx context.Context) error {
	if err := k.writer.Apply(ctx, corev1apply.Secret(k.secret.Name, k.secret.Namespace), fieldOwner); err != nil {
		return fmt.Errorf("creating secret %q: %w", k.secret, err)
	}
	logf.FromContext(ctx).Info("created the secret of the webhook's certificate", "secret", k.secret)
	return nil
}

// update stores a new certificate, unless somebody else wrote meanwhile: then that is looked at.
func (k *keeper) update(ctx context.Context, secret *corev1.Secret) error {
	err := k.writer.Update(ctx, secret)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("storing a new certificate in secret %q: %w", k.secret, err)
	}
	logf.FromContext(ctx).Info("made a new certificate for the webhook", "secret", k.secret)
	return nil
}

// inject tells the API server which authority to trust. Without the configuration there is nobody to tell.
func (k *keeper) inject(ctx context.Context, ca []byte) error {
	config := newConfiguration()
	err := k.reader.Get(ctx, client.ObjectKey{Name: ConfigurationName}, config)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("getting webhook configuration %q: %w", ConfigurationName, err)
	}
	config, changed, err := withAuthority(config, ca)
	if err != nil || !changed {
		return err
	}
	err = k.writer.Update(ctx, config)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // whoever wrote woke us
	}
	if err != nil {
		return fmt.Errorf("putting the authority into webhook configuration %q: %w", ConfigurationName, err)
	}
	logf.FromContext(ctx).Info("put the authority into the webhook configuration", "configuration", ConfigurationName)
	return nil
}

func newConfiguration() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("admissionregistration.k8s.io/v1")
	u.SetKind("ValidatingWebhookConfiguration")
	return u
}
