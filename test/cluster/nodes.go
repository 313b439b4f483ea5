// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// NodeAnnotation, with the value NodeAnnotationValue, makes kwok play the kubelet
// of a node. Take it off and the node is as dead as if its kubelet had been: its
// lease runs out, and its pods stay Terminating.
const (
	NodeAnnotation      = "kwok.x-k8s.io/node"
	NodeAnnotationValue = "fake"
)

// NodeOptions says what the nodes of AddNodes look like.
type NodeOptions struct {
	// Prefix of the names, which a number from 1 follows; "node-" if empty.
	Prefix string
	// Labels are added to those that a kubelet sets.
	Labels map[string]string
	// Annotations are added to NodeAnnotation.
	Annotations map[string]string
	// Taints the nodes begin with.
	Taints []corev1.Taint
	// Pods a node has room for; 110 if zero, as a kubelet's.
	Pods int
}

// AddNodes makes n nodes and waits until they are Ready, nothing but their own taints
// is on them, and kwok plays their pods. It returns their names.
func (c *Cluster) AddNodes(ctx context.Context, n int, o NodeOptions) ([]string, error) {
	prefix := o.Prefix
	if prefix == "" {
		prefix = "node-"
	}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s%d", prefix, i+1))
	}
	return names, c.addNodes(ctx, names, o)
}

// AddNode makes one node, of any name, and waits for it as AddNodes does.
func (c *Cluster) AddNode(ctx context.Context, name string, o NodeOptions) error {
	return c.addNodes(ctx, []string{name}, o)
}

func (c *Cluster) addNodes(ctx context.Context, names []string, o NodeOptions) error {
	for _, name := range names {
		if _, err := c.client.CoreV1().Nodes().Create(ctx, newNode(name, o), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making node %q: %w", name, err)
		}
	}
	return c.awaitNodes(ctx, names)
}

func newNode(name string, o NodeOptions) *corev1.Node {
	pods := o.Pods
	if pods == 0 {
		pods = 110
	}
	labels := map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}
	maps.Copy(labels, o.Labels)
	annotations := map[string]string{NodeAnnotation: NodeAnnotationValue}
	maps.Copy(annotations, o.Annotations)
	room := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("32"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("500Gi"),
		corev1.ResourcePods:             *resource.NewQuantity(int64(pods), resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations},
		Spec:       corev1.NodeSpec{Taints: o.Taints},
		Status:     corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
}

// AwaitNodes waits until all nodes that kwok plays are as AddNodes leaves them: those that the cluster began with are
// not at once.
func (c *Cluster) AwaitNodes(ctx context.Context) error {
	all, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the nodes to wait for: %w", err)
	}
	var names []string
	for i := range all.Items {
		if n := &all.Items[i]; n.Annotations[NodeAnnotation] == NodeAnnotationValue {
			names = append(names, n.Name)
		}
	}
	return c.awaitNodes(ctx, names)
}

// nodePatience is how long new nodes may take.
const nodePatience = time.Minute

func (c *Cluster) awaitNodes(ctx context.Context, names []string) error {
	var waiting []string
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, nodePatience, true,
		func(ctx context.Context) (bool, error) {
			now, err := c.served(ctx)
			if err != nil {
				return false, nil // tried again until the time is over
			}
			waiting = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return now[name] })
			return len(waiting) == 0, nil
		})
	if err != nil {
		return fmt.Errorf("waiting for nodes %q to become ready: %w; see %s", waiting, err, c.LogFile(Kwok))
	}
	return showPods(ctx, c.client, names)
}

// shown is a change of a pod that means nothing.
var shown = []byte(`{"metadata":{"annotations":{"nodemaint.test/shown":"true"}}}`)

// showPods changes the pods that are bound to the nodes and do not run yet, so that kwok looks at them: it may pass over
// one that is bound, as DaemonSets' are at once, in the moment in which it takes the node.
func showPods(ctx context.Context, client kubernetes.Interface, nodes []string) error {
	pods, err := client.CoreV1().Pods(corev1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!=,status.phase=" + string(corev1.PodPending)})
	if err != nil {
		return fmt.Errorf("listing the pods of new nodes: %w", err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if !slices.Contains(nodes, p.Spec.NodeName) {
			continue
		}
		_, err := client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, shown, metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("showing pod %s/%s to kwok: %w", p.Namespace, p.Name, err)
		}
	}
	return nil
}

// served returns the nodes that are usable and whose pods kwok plays: those whose lease it holds. A lease of the node
// that had the name before does not count, since the garbage collector is about to delete it.
func (c *Cluster) served(ctx context.Context) (map[string]bool, error) {
	cached := metav1.ListOptions{ResourceVersion: "0"}
	nodes, err := c.client.CoreV1().Nodes().List(ctx, cached)
	if err != nil {
		return nil, err
	}
	leases, err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, cached)
	if err != nil {
		return nil, err
	}
	leased := map[types.UID]bool{}
	for i := range leases.Items {
		for _, owner := range leases.Items[i].OwnerReferences {
			leased[owner.UID] = true
		}
	}
	out := map[string]bool{}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		out[n.Name] = usable(n) && leased[n.UID]
	}
	return out, nil
}

// usable reports whether a node is Ready and the cluster's own taints are off it.
func usable(n *corev1.Node) bool {
	for _, t := range n.Spec.Taints {
		if strings.HasPrefix(t.Key, "node.kubernetes.io/") && t.Key != corev1.TaintNodeUnschedulable {
			return false
		}
	}
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}
