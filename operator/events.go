// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

// eventSource is the source.component of all our events.
const eventSource = "NodeMaintenance"

// teller tells people what happens: by events and log lines.
type teller struct {
	client   client.Client        // creates the events that must be there exactly once
	recorder record.EventRecorder // sends the others, and may lose one
	clock    clock.PassiveClock
}

// happening is an event that is created exactly once for an object.
type happening struct {
	cause   *v1beta1.NodeMaintenance // its UID and the reason name the event
	on      corev1.ObjectReference
	kind    string // Normal or Warning
	reason  string
	message string
}

func begun(nm *v1beta1.NodeMaintenance) happening {
	return happening{nm, onObject(nm), corev1.EventTypeNormal, "BeginMaintenance", "Begin a node maintenance"}
}

func succeeded(nm *v1beta1.NodeMaintenance) happening {
	return happening{nm, onObject(nm), corev1.EventTypeNormal, "SucceedMaintenance", "Node maintenance was succeeded"}
}

func failed(nm *v1beta1.NodeMaintenance) happening {
	return happening{nm, onObject(nm), corev1.EventTypeWarning, "FailedMaintenance", "Failed a node maintenance"}
}

func uncordoned(nm *v1beta1.NodeMaintenance) happening {
	return happening{nm, onNode(nm), corev1.EventTypeNormal, "UncordonNode", "Uncordon a node"}
}

func removed(nm *v1beta1.NodeMaintenance) happening {
	return happening{nm, onObject(nm), corev1.EventTypeNormal, "RemovedMaintenance", "Removed a node maintenance"}
}

func restoreIncomplete(nm *v1beta1.NodeMaintenance, commands []string) happening {
	message := "The record of what stood on the node before its maintenance could not be read, so only what was certainly put there by it was taken off."
	if len(commands) > 0 {
		message += " To finish by hand, if these marks are not wanted: " + strings.Join(commands, "; ")
	}
	return happening{nm, onNode(nm), corev1.EventTypeWarning, "RestoreIncomplete", message}
}

func onObject(nm *v1beta1.NodeMaintenance) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "NodeMaintenance", Name: nm.Name, UID: nm.UID}
}

func onNode(nm *v1beta1.NodeMaintenance) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: nm.Spec.NodeName, UID: ownerUID(nm)}
}

// happeningOf returns the event of a step of the engine.
func happeningOf(nm *v1beta1.NodeMaintenance, t maintenance.Transition) happening {
	switch t.Step {
	case maintenance.Begin:
		return begun(nm)
	case maintenance.Succeed:
		return succeeded(nm)
	case maintenance.Fail:
		return failed(nm)
	case maintenance.Uncordon:
		return uncordoned(nm)
	default:
		return restoreIncomplete(nm, t.Commands)
	}
}

// create creates the event of h. That it is there already is success: it was created before a crash.
func (t *teller) create(ctx context.Context, h happening) error {
	now := metav1.NewTime(t.clock.Now())
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, // where events of objects without a namespace belong
			Name:      strings.ToLower(h.reason) + "-" + string(h.cause.UID),
		},
		InvolvedObject: h.on, Type: h.kind, Reason: h.reason, Message: h.message,
		Source:         corev1.EventSource{Component: eventSource},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	if err := t.client.Create(ctx, e); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating event %s of NodeMaintenance %q: %w", h.reason, h.cause.Name, err)
	}
	return nil
}

// onTransition is the engine's hook: it finds the object in the context of the call.
func (t *teller) onTransition(ctx context.Context, step maintenance.Transition) error {
	nm := objectFrom(ctx)
	if nm == nil {
		return fmt.Errorf("step %s of node %q: no NodeMaintenance in the context", step.Step, step.Node)
	}
	return t.create(ctx, happeningOf(nm, step))
}

type objectKey struct{}

func withObject(ctx context.Context, nm *v1beta1.NodeMaintenance) context.Context {
	return context.WithValue(ctx, objectKey{}, nm)
}

func objectFrom(ctx context.Context) *v1beta1.NodeMaintenance {
	nm, _ := ctx.Value(objectKey{}).(*v1beta1.NodeMaintenance)
	return nm
}
