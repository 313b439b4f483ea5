// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/deploy"
)

//go:embed workload.yaml
var workload string

// node is the one that needs repair.
const node = "node-1"

// blockedFor is how long the demo lets a budget block before it relaxes it.
const blockedFor = 4 * time.Second

// story is the demo from the workload to the events.
type story struct {
	*deploy.Installation
	client client.WithWatch
	out    io.Writer
}

func (s *story) tell(ctx context.Context) error {
	var err error
	if s.client, err = client.NewWithWatch(s.Cluster.RESTConfig(), client.Options{Scheme: deploy.Scheme()}); err != nil {
		return err
	}
	title("The workload: about 40 pods, most of them where they should not be")
	if err := s.deploy(ctx); err != nil {
		return err
	}
	before, err := s.show(ctx, "Before: the node")
	if err != nil {
		return err
	}
	title("kubectl create -f")
	fmt.Fprint(s.out, object(node))
	if _, err := s.Kubectl(ctx, strings.NewReader(object(node)), "create", "-f", "-"); err != nil {
		return err
	}
	title("The drain")
	if err := s.follow(ctx); err != nil {
		return err
	}
	if err := s.print(ctx, "get", "nodemaintenances", "-o", "wide"); err != nil {
		return err
	}
	if _, err := s.show(ctx, "During: the node is held and empty but for DaemonSets and the mirror pod"); err != nil {
		return err
	}
	return s.finish(ctx, before)
}

// finish deletes the object and compares the node with what it was.
func (s *story) finish(ctx context.Context, before *corev1.Node) error {
	title("kubectl delete nodemaintenance " + node)
	if _, err := s.Kubectl(ctx, nil, "delete", "nodemaintenance", node, "--wait"); err != nil {
		return err
	}
	after, err := s.show(ctx, "After: the node")
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(before.Spec, after.Spec) || !equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) {
		return errors.New("the node is not what it was before")
	}
	fmt.Fprintln(s.out, "Spec, labels and annotations are what they were before.")
	title("Events")
	return s.print(ctx, "get", "events", "-n", "default", "--sort-by=.metadata.creationTimestamp",
		"-o", "custom-columns=TYPE:.type,REASON:.reason,KIND:.involvedObject.kind,NAME:.involvedObject.name,MESSAGE:.message",
		"--field-selector", "source=NodeMaintenance")
}

// deploy creates the workload and waits until it runs.
func (s *story) deploy(ctx context.Context) error {
	if _, err := s.Kubectl(ctx, strings.NewReader(workload), "create", "-f", "-"); err != nil {
		return err
	}
	for _, what := range []string{"deployment/web", "deployment/payments", "deployment/search", "statefulset/db"} {
		if _, err := s.Kubectl(ctx, nil, "rollout", "status", "-n", "shop", what, "--timeout=60s"); err != nil {
			return err
		}
	}
	_, err := s.Kubectl(ctx, nil, "wait", "-n", "shop", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
	return err
}

// show prints what of the node a maintenance changes, and its pods, and returns the node.
func (s *story) show(ctx context.Context, heading string) (*corev1.Node, error) {
	n := &corev1.Node{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := s.client.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, err
	}
	title(heading)
	fmt.Fprint(s.out, describe(n, pods.Items))
	return n, nil
}

func (s *story) print(ctx context.Context, args ...string) error {
	text, err := s.Kubectl(ctx, nil, args...)
	fmt.Fprint(s.out, "\n", text)
	return err
}

// follow shows the maintenance until it has succeeded, and relaxes the budget that blocks it.
func (s *story) follow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	w, err := s.client.Watch(ctx, &v1beta1.NodeMaintenanceList{})
	if err != nil {
		return err
	}
	defer w.Stop()
	view := newView(s.out)
	defer view.close()
	var relax <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the maintenance has not succeeded: %w", context.Cause(ctx))
		case <-relax:
			view.note("relaxing budget shop/payments: kubectl patch pdb payments -n shop --type=merge -p '{\"spec\":{\"minAvailable\":0}}'")
			if _, err := s.Kubectl(ctx, nil, "patch", "pdb", "payments", "-n", "shop", "--type=merge", "-p", `{"spec":{"minAvailable":0}}`); err != nil {
				return err
			}
		case e, ok := <-w.ResultChan():
			if !ok {
				return errors.New("the watch of the maintenance ended")
			}
			nm, ok := e.Object.(*v1beta1.NodeMaintenance)
			if !ok {
				return apierrors.FromObject(e.Object)
			}
			view.update(nm)
			if relax == nil && blocked(nm) {
				relax = time.After(blockedFor)
			}
			if nm.Status.Phase == v1beta1.MaintenanceSucceeded {
				return nil
			}
		}
	}
}

// object is the NodeMaintenance of a node, as a person would write it.
func object(node string) string {
	return fmt.Sprintf(`apiVersion: nodemaintenance.medik8s.io/v1beta1
kind: NodeMaintenance
metadata:
  name: %[1]s
spec:
  nodeName: %[1]s
  reason: replace the fan
`, node)
}
